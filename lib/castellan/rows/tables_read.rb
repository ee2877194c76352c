# frozen_string_literal: true

module Castellan
  module Rows
    # Every table that the statements of a plan read, or nil where that cannot be known. Frozen, one for each plan.
    #
    #   TablesRead.new(adapter, plan).call(User.where(active: true).to_sql)   # => ["users", "roles", "assignments"]
    #   TablesRead.new(adapter, plan).scopes                                  # => SQL of the associations whose scopes are evaluated
    #
    # Names are taken from the SQL itself and held against the tables of the database. Nothing is said where a statement
    # reads a view, a function, a table of another schema or one whose rows the database chooses by who asks (PostgreSQL's row-level
    # security, as it was when the database was looked at first), asks for the time, or where a block or a reader written by
    # hand looks at a record: Ruby may read anything.
    class TablesRead
      NAME = /"([^"]+)"|`([^`]+)`|\b([a-z_][a-z0-9_$]*)\b(?!\s*\.)/i
      CALL = /\b([a-z_][a-z0-9_]*)\s*\(/i
      SOURCE = /\b(?:FROM|JOIN)\s+["`]?([a-z_][a-z0-9_$]*)/i
      LISTED_SOURCES = /\bFROM\s+["`]?\w+["`]?(?:\s+["`]?\w+["`]?)?\s*,/i
      OTHER_SCHEMA = /(?:["`]\w+["`]\.){2}["`]|\b(?:FROM|JOIN)\s+["`]?\w+["`]?\./i
      CLOCK = /\b(?:current_(?:timestamp|date|time|user|setting)|localtime|localtimestamp|session_user)\b/i
      SAFE_CALLS = %w[
        in and or not exists values count min max sum avg coalesce lower upper length abs round cast any all select from join where on as by
        unnest json_each group_concat nullif trim over partition distinct using when then else case between like is lateral
        with filter row_number
      ].freeze
      # Not tables: what stands after FROM in the statements that rows write themselves.
      OWN_SOURCES = /\A(?:castellan_|json_each\z|unnest\z|lateral\z|select\z)/i
      private_constant :NAME, :CALL, :SOURCE, :LISTED_SOURCES, :OTHER_SCHEMA, :CLOCK, :SAFE_CALLS, :OWN_SOURCES

      def initialize(adapter, plan)
        @adapter = adapter
        @known = true
        @fixed = []
        @scoped = []
        visit(plan.root, adapter)
        @fixed_tables = @known ? tables_of(@fixed) : nil
        freeze
      end

      # @param scope_sql [String]
      # @param further [Array<String>]
      # @return [Array<String>, nil]
      def call(scope_sql, further = [])
        return unless @fixed_tables

        read = tables_of([scope_sql, *scopes, *further])
        read && (@fixed_tables | read)
      end

      # @return [Array<String>] the SQL of the associations that have scopes, for this request
      def scopes
        @scoped.map { |association| association.lazy.whole_sql }
      end

      private

      def visit(node, adapter)
        @known &&= !opaque?(node, adapter)
        return unless @known

        @fixed << "SELECT 1 FROM #{adapter.table_sql}"
        node.columns.each { |column| walk(adapter, column.path) }
        node.edges.each { |edge| edge(edge, adapter) }
      end

      # Links to several types are in the row itself; what hides a record of them is not looked at here.
      def edge(edge, adapter)
        edge.alternatives ? @known &&= edge_known?(edge, adapter) : walk(adapter, [edge.relationship.association_name])
        edge.nodes.each { |node| visit(node, adapter.related(node.definition.model)) }
      end

      def edge_known?(edge, adapter)
        edge.relationship.definitions.none? { |definition| adapter.related(definition.model).scoped? }
      end

      def walk(adapter, path)
        path.reduce(adapter) do |level, name|
          association = level.association(name)
          association.stable? ? @fixed << association.lazy.whole_sql : @scoped << association
          association.adapter
        end
      end

      def opaque?(node, adapter)
        adapter.model.nil? || ModelReasons.of_tables(node, adapter).any?
      end

      def tables_of(texts)
        texts = texts.map { |text| text.gsub(/'(?:[^']|'')*'/, "''") }
        return if texts.any? { |text| unknown?(text) }

        mentioned = texts.flat_map { |text| text.scan(NAME).flatten.compact }.uniq
        @adapter.names(:tables) & mentioned unless @adapter.guarded_tables.intersect?(mentioned)
      end

      def unknown?(text)
        text.match?(OTHER_SCHEMA) || text.match?(CLOCK) || text.match?(LISTED_SOURCES) ||
          text.gsub(/"[^"]*"/, '""').scan(CALL).flatten.any? { |name| !SAFE_CALLS.include?(name.downcase) } ||
          text.scan(SOURCE).flatten.any? { |name| !name.match?(OWN_SOURCES) && !@adapter.names(:tables).include?(name) }
      end
    end
  end
end
