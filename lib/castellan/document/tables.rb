# frozen_string_literal: true

module Castellan
  class Document
    # Finds the tables that a document is made of, once per shape of its scope.
    #
    #   tables = Tables.new(plan, adapter)
    #   tables.of(scope, shape) { scopes_sql }   # => ["roles", "users"]; nil: not known
    #
    # The result is cached only where no association has a scope, because a scope may choose other tables in each request.
    class Tables
      # A shape longer than this is not worth keeping.
      MAX_BYTESIZE = 4_096
      private_constant :MAX_BYTESIZE

      def initialize(plan, adapter)
        @plan = plan
        @adapter = adapter
      end

      # @param scope [Object] the caller's relation or dataset
      # @param shape [String] see {Rows::Scopes#identity}
      # @yieldreturn [Array<String>] SQL of the scopes of the resources in the plan
      # @return [Array<String>, nil]
      def of(scope, shape, &scopes)
        found = find(scope, shape, &scopes) if tables_read.reasons.empty?
        found if found.is_a?(Array)
      end

      # @return [Array<String>] why {#of} returns nil
      def reasons(scope, shape, &scopes)
        return tables_read.reasons if tables_read.reasons.any?

        found = find(scope, shape, &scopes)
        found.is_a?(Array) ? [] : ["the tables that a statement reads are not certain: #{found}"]
      end

      private

      def tables_read
        Rows::TablesRead.for(@plan, @adapter)
      end

      def find(scope, shape, &scopes)
        return read(scope, &scopes) if tables_read.changing? || shape.bytesize > MAX_BYTESIZE

        @plan.derive(:tables_of_shapes) { BoundedCache.new }.fetch(shape) { read(scope, &scopes) }
      end

      def read(scope)
        @adapter.scopes.tables(@plan, scope, yield).freeze
      end
    end
  end
end
