# frozen_string_literal: true

module Castellan
  module Rows
    # Acts as the adapter of a resource without a model, whose documents are made of plain objects.
    #
    #   rows = ObjectRows.new
    #   rows.fetch(plan, Records.new([{ id: 1, title: "Keep" }]))   # => RowSet
    #
    # Declarations of such resources are not checked at boot, because their objects are not known then.
    class ObjectRows
      # @return [ObjectInstances]
      attr_reader :instances

      def initialize
        @instances = ObjectInstances.new
        freeze
      end

      # @return [nil]
      def model
        nil
      end

      # @return [Boolean] whether the object is {Records}
      def scope?(object)
        object.is_a?(Records)
      end

      # @return [nil]
      def primary_key
        nil
      end

      # There is no connection to release.
      def apart
        yield
      end

      # @return [nil] records are loaded already
      def scope_reason(_scope)
        nil
      end

      # @return [nil] relationships are read from the objects
      def association(_name)
        nil
      end

      # @return [Boolean] false, because there is no connection
      def unreachable?(_error)
        false
      end

      # @param object [Class, nil] the model of related records
      # @return [Object] an adapter
      def related(object)
        object ? Rows.for(object) : self
      end

      # @return [Boolean] true: the id is what the reader returns
      def identifies?(_column)
        true
      end

      # @return [Boolean] false, because the type of ids is unknown
      def integer?(_column)
        false
      end

      # @param plan [Plan::FetchPlan]
      # @param records [Records]
      # @return [Plan::RowSet]
      def fetch(plan, records, viewer: nil, scopes: ViewerScopes.new(viewer))
        plan.derive([:reader, nil]) { Reader.new(plan, self) }.call(records, viewer: viewer, scopes: scopes)
      end

      # @yieldparam session [nil] there is no connection
      def session
        yield nil
      end

      # @return [String] JSON text
      def json(value)
        JSONValue.text(value)
      end
    end
  end
end
