// Validates an OpenAPI document against the schema of OpenAPI 3.1, and every component against JSON Schema 2020-12.
import { readFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

const document = JSON.parse(readFileSync(process.argv[2], "utf8"));
const result = await new Validator().validate(structuredClone(document));
const samples = JSON.parse(readFileSync(process.argv[3], "utf8"));
const ajv = addFormats.default ? addFormats.default(new Ajv2020.default({ strict: false })) : addFormats(new Ajv2020.default({ strict: false }));
ajv.addSchema({ $id: "api", components: document.components });
const checks = samples.map(([pointer, value]) => ajv.validate({ $ref: `api#${pointer}` }, value));
console.log(JSON.stringify({ valid: result.valid, errors: result.errors, checks }));
