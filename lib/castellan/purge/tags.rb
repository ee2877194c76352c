# frozen_string_literal: true

require "digest/sha2"
require "json"

module Castellan
  class Purge
    # Lists the tags of a document: the rows, columns and tables that it depends on.
    #
    #   posts/7       this row changed
    #   posts/?       a row changed whose id has characters other than letters, digits, ".", ":", "_" and "-"
    #   posts+        a row was added or removed
    #   posts.title   this column changed in some row; the document filters, sorts or joins by it
    #   posts~        any row changed; the document reads values of the table without its ids
    #   posts*        all rows may have changed
    #
    # {Triggers} write the same tags for changes. A page of posts is therefore purged when one of its posts
    # changes, when a post is added, and when a post may move into it. Header fields and proxies get digests,
    # so that clients do not learn the names of tables and columns, and no tag needs escaping.
    class Tags
      # Longer lists are reduced to whole tables, because proxies limit the size of header fields.
      MOST = 250
      USUAL = /\A[A-Za-z0-9_.:-]+\z/
      private_constant :MOST, :USUAL

      # @param tags [Array<String>]
      # @return [Array<String>] ten hexadecimal digits each
      def self.digests(tags)
        tags.map { |tag| Digest::SHA256.hexdigest(tag)[0, 10] }
      end

      # @param name [String] of a table or column
      # @return [String] the name as part of a tag
      def self.word(name)
        name.tr(" ", "_")
      end

      # @param id [String] as in documents
      # @return [Array<String>] the tags of one row
      def self.of_row(table, id)
        [row(table, id), "#{table}*"].map { |tag| word(tag) }
      end

      # @return [String] `posts/7`
      def self.row(table, id)
        "#{table}/#{USUAL.match?(id) ? id : "?"}"
      end

      # @param definitions [Array<Resource::Definition>]
      # @return [Hash{String => Array<Array<String>>}] table => the columns of the ids that documents show,
      #   for the resources' tables and those that their relationships and paths read
      def self.tables(definitions)
        definitions.each_with_object(Hash.new { |all, table| all[table] = [] }) do |definition, found|
          adapter = Rows.for(definition.model)
          found[adapter.table] |= [id_columns(definition, adapter)]
          definition.relationships.each_value { |relationship| related(adapter, relationship).each { |table, ids| found[table] |= [ids] } }
          related = definition.relationships.each_value.reject(&:polymorphic?).map(&:name)
          plan = Plan.compile(definition, Plan::Request.parse(definition, {}, include: related))
          read = Rows::TablesRead.for(plan, adapter).call("SELECT 1 FROM #{adapter.types.table}")
          read.each { |table| found[table] } if read.is_a?(Array)
        end
      end

      def self.id_columns(definition, adapter)
        Array(definition.id_column || adapter.primary_key).map(&:to_s)
      end

      # @return [Array<Array(String, Array<String>)>] tables, each with the columns of the ids of included
      #   records
      def self.related(adapter, relationship)
        relationship.definitions.filter_map do |definition|
          other = Rows.related(adapter, relationship, definition)
          [other.table, id_columns(definition, other)] if other.model
        end
      end
      private_class_method :id_columns, :related

      # @param rendering [Document::Rendering] a cached or new document whose tables are known
      def initialize(rendering)
        @rendering = rendering
        @nodes = rendering.plan.nodes
        @table_of = @nodes.to_h { |node| [node.definition.type, adapter(node).table] }
        @edges = @nodes.flat_map { |node| node.edges.map { |edge| [edge.relationship, node] } }
      end

      # @return [Array<String>]
      def to_a
        ids = ids()
        return whole.map { |tag| Tags.word(tag) } unless ids.keys.all? { |type| @table_of.key?(type) }

        exact = sets + ids.flat_map { |type, found| found.map { |id| Tags.row(@table_of[type], id) } }
        (exact.uniq.size <= MOST ? exact.uniq : whole).map { |tag| Tags.word(tag) }
      end

      private

      def adapter(node)
        Rows.for(node.definition.model)
      end

      def whole
        @rendering.tables.flat_map { |table| ["#{table}*", "#{table}~"] }
      end

      def sets
        known = adapters.keys
        @rendering.tables.map { |table| "#{table}*" } + (@rendering.tables - known + ends_of_paths).map { |table| "#{table}~" } +
          growing.map { |table| "#{table}+" } + columns
      end

      def ids
        return { nil => [] } unless @rendering.plan.format == :json_api

        document = JSON.parse(@rendering.body, allow_duplicate_key: true)
        [*(document["data"].is_a?(Hash) ? [document["data"]] : document["data"]), *document["included"]]
          .group_by { |object| object["type"] }.transform_values { |objects| objects.map { |object| object["id"] } }
      rescue JSON::ParserError # a column of the type json may have what the gem json refuses, such as 101 levels
        { nil => [] }
      end

      # @return [Hash{String => Object}] table => adapter, for resources that the document shows or links to
      def adapters
        @adapters ||= (@nodes.map { |node| adapter(node) } + @edges.flat_map { |relationship, node| targets(relationship, node) })
                      .to_h { |adapter| [adapter.table, adapter] }
      end

      def targets(relationship, node)
        relationship.definitions.map { |definition| Rows.related(adapter(node), relationship, definition) }
      end

      # @return [Array<String>] the tables whose new rows the document may show or link to. Excludes targets
      #   of belongs_to: a column of the document's own record names them
      def growing
        root = @table_of.fetch(@rendering.definition.type)
        chosen = named(adapters.keys, @rendering.choosing_sql) - (@rendering.collection? ? [] : [root])
        linked = @edges.reject { |relationship, _| relationship.macro == :belongs_to }
        (chosen + linked.flat_map { |relationship, node| targets(relationship, node).map(&:table) } + joined(linked)).uniq
      end

      # @return [Array<String>] the tables on the way to the targets that have a resource in the document, such as a join table
      def joined(edges)
        edges = edges.reject { |relationship, _| relationship.polymorphic? || relationship.itself? }
        named(adapters.keys, edges.map { |relationship, node| whole_sql(node, relationship.association_name) })
      end

      # Kept with the plan, unless the association's scope may change: building it takes longer than all other tags.
      def whole_sql(node, name)
        association = -> { adapter(node).association(name) }
        kept = @rendering.plan.derive([:whole_sql, node.definition.model, name]) { (one = association.call).stable? && one.lazy.whole_sql }
        kept || association.call.lazy.whole_sql
      end

      # Returns the columns by which the document's statements filter, sort and join.
      def columns
        sql = @rendering.choosing_sql + @rendering.associations_sql
        adapters.flat_map { |table, adapter| named(adapter.columns.map(&:to_s), sql).map { |column| "#{table}.#{column}" } }
      end

      # Unquoted names in SQL may have any case, and a name with a schema has quotes around each part.
      def named(names, sql)
        text = sql.join(" ").downcase
        words = text.scan(/\w+/).uniq
        names.select do |name|
          name.downcase.split(".").all? { |part| part.match?(/\A\w+\z/) ? words.include?(part) : text.include?(part) }
        end
      end

      # The document has no ids for values at the end of a path.
      def ends_of_paths
        @nodes.flat_map do |node|
          paths = node.columns.map(&:path).reject(&:empty?)
          paths.flat_map { |path| (1..path.size).map { |length| adapter(node).at(path.first(length)).table } }
        end
      end
    end
  end
end
