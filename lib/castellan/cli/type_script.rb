# frozen_string_literal: true

require "json"

module Castellan
  module CLI
    # Writes the schemas of resources as TypeScript interfaces.
    #
    #   puts TypeScript.new([PostResource.definition])   # export interface Post { type: "posts"; … }
    #
    # `Post` is for responses; `NewPost` and `PostChanges` are for requests.
    class TypeScript
      HEAD = <<~TS
        // Written by `castellan types` from the application's resources. Do not edit.

        export interface Document<Data, Included = Resource> {
          data: Data;
          included?: Included[];
          links?: Record<string, string | null>;
          meta?: Record<string, unknown>;
          jsonapi?: { version?: string; meta?: Record<string, unknown> };
        }

        export interface ErrorDocument {
          errors: {
            status?: string;
            code?: string;
            title?: string;
            detail?: string;
            source?: { pointer?: string; parameter?: string; header?: string };
            links?: Record<string, unknown>;
            meta?: Record<string, unknown>;
          }[];
        }
      TS
      WORD = /\A[A-Za-z_$][\w$]*\z/
      TAKEN = %w[Document ErrorDocument Resource Record].freeze
      private_constant :HEAD, :WORD, :TAKEN

      def initialize(definitions)
        @definitions = definitions
        @schemas = Serve::Schemas.new(all: true)
      end

      def to_s
        several, single = @definitions.partition(&:several_types?)
        unions = several.map { |definition| "#{union(name(definition), definition.types)}\n" }
        [HEAD, *single.map { |definition| interfaces(definition) }, *unions, union("Resource", single)].join("\n")
      end

      private

      def union(name, definitions)
        "export type #{name} = #{definitions.map { |definition| name(definition) }.join(" | ")};"
      end

      # `DocumentResource` keeps its name, because `Document` is another type.
      def name(definition)
        name = definition.name.gsub("::", "")
        short = name.delete_suffix("Resource")
        TAKEN.include?(short) ? name : short
      end

      def interfaces(definition)
        name = name(definition)
        { name => @schemas.read(definition), "New#{name}" => @schemas.write(definition, :create),
          "#{name}Changes" => @schemas.write(definition, :update) }.compact.map { |one, schema|
          "export interface #{one} #{type(schema)}\n"
        }.join("\n")
      end

      def type(schema, depth = 1)
        return JSON.generate(schema["const"]) if schema.key?("const")
        return schema["enum"].map { |value| JSON.generate(value) }.join(" | ") if schema.key?("enum")
        return schema["oneOf"].map { |one| type(one, depth) }.join(" | ") if schema.key?("oneOf")

        types = Array(schema["type"]).map { |one| plain(one, schema, depth) }.uniq
        types.empty? ? "unknown" : types.join(" | ")
      end

      def plain(type, schema, depth)
        case type
        when "integer" then "number"
        when "array" then "(#{type(schema["items"], depth)})[]"
        when "object" then object(schema, depth)
        else type
        end
      end

      def object(schema, depth)
        return "Record<string, unknown>" unless schema["properties"]

        required = schema.fetch("required", [])
        lines = schema["properties"].map do |name, one|
          key = WORD.match?(name) ? name : JSON.generate(name)
          "#{"  " * depth}#{key}#{"?" unless required.include?(name)}: #{type(one, depth + 1)};\n"
        end
        "{\n#{lines.join}#{"  " * (depth - 1)}}"
      end
    end
  end
end
