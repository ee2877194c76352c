// A round trip with Orbit's JSONAPISource. Prints each result as a line of JSON.
import { JSONAPISerializers, JSONAPISource } from "@orbit/jsonapi"
import { RecordSchema } from "@orbit/records"
import { buildInflector, buildSerializerSettingsFor } from "@orbit/serializers"

const [host] = process.argv.slice(2)
const string = { type: "string" }
const schema = new RecordSchema({
  models: {
    writer: { attributes: { name: string }, relationships: {} },
    tag: { attributes: { name: string }, relationships: {} },
    post: {
      attributes: { title: string, slug: string, rating: { type: "number" } },
      relationships: { writer: { kind: "hasOne", type: "writer" }, tags: { kind: "hasMany", type: "tag" } }
    }
  }
})
const plural = { serializationOptions: { inflectors: ["pluralize"] }, deserializationOptions: { inflectors: ["singularize"] } }
const remote = new JSONAPISource({
  schema, name: "remote", host,
  serializerSettingsFor: buildSerializerSettingsFor({
    sharedSettings: {
      inflectors: { pluralize: buildInflector({}, name => `${name}s`), singularize: buildInflector({}, name => name.replace(/s$/, "")) }
    },
    settingsByType: { [JSONAPISerializers.ResourceType]: plural, [JSONAPISerializers.ResourceTypePath]: plural }
  })
})
const print = value => console.log(JSON.stringify(value))
const refused = what => async error => { // a failed request blocks Orbit's queue until it is skipped
  print(what(error))
  await remote.requestQueue.skip()
}

const list = await remote.query(q => q.findRecords("post").sort("title"), { include: ["writer", "tags"] })
print(list.map(post => [post.attributes.title, post.relationships.writer.data.type, post.relationships.tags.data.length]))

// Orbit chooses the ids of new records, which the server allows for tags.
const tag = await remote.update(t => t.addRecord({ type: "tag", id: "77", attributes: { name: "orbit" } }))
print([tag.id, tag.attributes.name])
await remote.update(t => t.addRecord({ type: "post", id: "78", attributes: { title: "Third" } }))
  .then(print, refused(error => error.response.status))

const post = { type: "post", id: "1" }
await remote.update(t => t.replaceAttribute(post, "title", "Changed by Orbit"))
await remote.update(t => t.addToRelatedRecords(post, "tags", tag))
await remote.update(t => t.removeFromRelatedRecords(post, "tags", { type: "tag", id: "1" }))
await remote.update(t => t.replaceRelatedRecord(post, "writer", { type: "writer", id: "2" }))
const writer = await remote.query(q => q.findRelatedRecord(post, "writer"))
const tags = await remote.query(q => q.findRelatedRecords(post, "tags"))
const { attributes } = await remote.query(q => q.findRecord(post))
print([attributes.title, writer.attributes.name, tags.map(({ attributes }) => attributes.name)])
await remote.update(t => t.replaceAttribute(post, "title", "No"))
  .then(print, refused(error => error.data.errors[0].source.pointer))

await remote.update(t => t.removeFromRelatedRecords(post, "tags", tag))
await remote.update(t => t.removeRecord(tag))
print(await remote.query(q => q.findRecord(tag)).then(found => found ?? "gone", error => error.constructor.name))
