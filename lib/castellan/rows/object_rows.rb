# frozen_string_literal: true

module Castellan
  module Rows
    # Stands for a database where there is none: the adapter of a resource without a model, whose documents are made of objects.
    #
    #   rows = ObjectRows.new
    #   rows.fetch(plan, Records.new([{ id: 1, title: "Keep" }]))   # => RowSet
    #
    # Nothing is known of such objects before they are there, so nothing is checked at boot and nothing is kept.
    class ObjectRows
      # @return [ObjectInstances]
      attr_reader :instances

      def initialize
        @instances = ObjectInstances.new
        freeze
      end

      # @return [nil] objects are of no class that is known before
      def model
        nil
      end

      # @return [Boolean] nothing but {Records} can be read
      def scope?(object)
        object.is_a?(Records)
      end

      # @return [nil] records are not read in batches
      def division
        nil
      end

      # @return [nil] what an object answers is asked of the object
      def association(_name)
        nil
      end

      # @return [Boolean] whether the error says that there is no connection to ask
      def unreachable?(_error)
        false
      end

      # @param object [Class, nil] the model of related records
      # @return [Object] an adapter
      def related(object)
        object ? Rows.for(object) : self
      end

      # @return [Boolean] nothing but what a reader answers is known
      def identifies?(_column)
        true
      end

      # @return [Boolean] whether ids are known to be whole numbers
      def integer?(_column)
        false
      end

      # @param plan [Plan::FetchPlan]
      # @param records [Records]
      # @return [Plan::RowSet]
      def fetch(plan, records, viewer: nil, scopes: ViewerScopes.new(viewer))
        plan.derive([:reader, nil]) { Reader.new(plan, self) }.call(records, viewer: viewer, scopes: scopes)
      end

      # @yield nothing: there is no connection
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
