# frozen_string_literal: true

module Castellan
  module Rows
    # Checks that an object implements the interface of an {Adapter}, for tests of other adapters.
    #
    #   Linter.new(Rows.for(User)).call      # raises ConfigurationError with every defect
    #   Linter.new(Rows.for(User)).defects   # => ["MyRows#at - of no path is nil, not the adapter"]
    #
    # Only reads. The table should have some rows and a primary key,
    # because ids, pages and records are compared.
    class Linter
      METHODS = %i[model dialect types scopes instances table columns columns_of column_of_any_table? primary_key associations association
                   at along related stable_path? loaded_classes same_database? fetch session apart snapshot place within disconnect_idle
                   json].freeze
      TYPES = %i[table name quote qualified sql database_type integer? coder cast typecast literal kind enum compared nullable? identifies?
                 unique? indexes_from tables needs_record? record_reason custom_type].freeze
      SCOPES = %i[all from own? reason load load_by_ids by_ids ids order page count key identity keys select_sql select_by_ids_sql
                  constant_by_ids? where_sql matching plain? subquery_sql among_sql joinable? key_order extent after unlimited hide_rows?
                  tables statement_tables].freeze
      INSTANCES = %i[read stored loaded? related stored? all? preload preload_where_same].freeze
      ROWS = 100
      private_constant :TYPES, :SCOPES, :INSTANCES, :ROWS

      def initialize(adapter)
        @adapter = adapter
        @defects = []
      end

      # @raise [ConfigurationError] with all defects
      # @return [Object] the adapter
      def call
        return @adapter if defects.empty?

        raise ConfigurationError, "not an adapter of rows:\n#{@defects.join("\n")}"
      end

      # @return [Array<String>] lines of "Class#method - defect"; empty if there are none
      def defects
        @defects.clear
        missing(@adapter, METHODS)
        lint_parts if @defects.empty?
        lint if @defects.empty?
        @defects
      end

      private

      def lint_parts
        { types: TYPES, scopes: SCOPES, instances: INSTANCES }.each { |part, names| missing(@adapter.public_send(part), names) }
      end

      def missing(part, names)
        names.each { |name| note(name, "is missing", part) unless part.respond_to?(name) }
      end

      def lint
        lint_adapter
        lint_types
        return unless @adapter.primary_key

        @ids = scopes.ids(all)
        lint_scopes
        lint_sql
        lint_records
      end

      def lint_adapter
        expect(:at, @adapter, @adapter.at([]), "of no path")
        expect(:along, [], @adapter.along([]), "of no path")
        expect(:related, @adapter, @adapter.related(@adapter.model), "of its own model")
        expect(:same_database?, true, @adapter.same_database?(@adapter), "of itself")
        expect(:stable_path?, true, @adapter.stable_path?([]), "of no path")
        expect(:json, %({"a":[1,null]}), @adapter.json({ a: [1, nil] }), "of {a: [1, nil]}")
        expect(:session, 1, @adapter.session { |session| session.count(session.rows("SELECT 1")) }, "of SELECT 1, in rows,")
        %i[apart snapshot].each { |name| expect(name, :block, @adapter.public_send(name) { :block }, "of a block") }
      end

      def lint_types
        @adapter.columns.each do |name|
          texts = %i[quote qualified sql database_type].reject { |method| @adapter.types.public_send(method, name).is_a?(String) }
          texts.each { |method| note(method, "of #{name} is no String", @adapter.types) }
          coder = @adapter.types.coder(name)
          note(:coder, "of #{name} is #{coder.inspect}, neither a Symbol nor nil", @adapter.types) unless coder.nil? || coder.is_a?(Symbol)
        end
      end

      def lint_scopes
        key = @adapter.primary_key
        expect(:own?, true, scopes.own?(all), "of all rows", scopes)
        expect(:reason, nil, scopes.reason(all), "of all rows", scopes)
        expect(:count, @ids.size, scopes.count(all), "of all rows", scopes)
        down = scopes.ids(scopes.page(scopes.order(all, [[key, :desc]]), limit: ROWS, offset: 0))
        up = scopes.ids(scopes.page(scopes.order(all, [[key, :asc]]), limit: ROWS, offset: [@ids.size - ROWS, 0].max))
        expect(:order, up, down.reverse, "by the key, backwards,", scopes)
        expect(:by_ids, some.sort, scopes.ids(scopes.by_ids(all, some)).sort, "of #{some.inspect}", scopes)
      end

      # A scope must select the same rows as a subquery in a condition.
      def lint_sql
        chosen = scopes.where_sql(all, "#{@adapter.types.qualified(scopes.keys.first)} IN (#{scopes.subquery_sql(limited, scopes.keys)})")
        expect(:subquery_sql, some.sort, scopes.ids(chosen).sort, "of #{some.size} rows", scopes)
      end

      def lint_records
        records = scopes.load(scopes.by_ids(all, some))
        found = @adapter.instances.read(records, @adapter.primary_key).map(&:to_s)
        expect(:load, some.sort, found.sort, "of #{some.inspect}", scopes)
        expect(:all?, true, @adapter.instances.all?(records), "of its own records", @adapter.instances)
        expect(:stored?, true, @adapter.instances.stored?(records), "of its own records", @adapter.instances)
      end

      def scopes = @adapter.scopes
      def all = scopes.all
      def some = @ids.first(3)
      def limited = scopes.by_ids(all, some).then { |scope| scope.is_a?(Ids::Chosen) ? scope.relation : scope }

      def expect(name, expected, found, what, part = @adapter)
        note(name, "#{what} is #{shown(found)}, not #{shown(expected)}", part) unless expected == found
      end

      def shown(value) = value.equal?(@adapter) ? "the adapter" : value.inspect[0, 60]

      def note(name, text, part = @adapter)
        @defects << "#{part.class}##{name} - #{text}"
      end
    end
  end
end
