# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # What rows ask of instances of a Sequel model, or of the hashes that a dataset answers.
      #
      #   instances = SequelRows.for(MailLog).instances
      #   instances.loaded?(log, :category)   # => false
      class Instances < ObjectInstances
        def initialize(adapter)
          @adapter = adapter
          @model = adapter.model
          super()
        end

        # @return [Boolean]
        def loaded?(record, name)
          !record.is_a?(::Sequel::Model) || record.new? || record.class.association_reflection(name).nil? || record.associations.key?(name)
        end

        # @return [Boolean]
        def all?(records)
          records.all? { |record| @model.is_a?(Class) ? record.is_a?(@model) : record.is_a?(Hash) }
        end

        # @return [Boolean]
        def stored?(records)
          records.all? { |record| record.is_a?(::Sequel::Model) ? record.is_a?(@model) && !record.new? : !@model.is_a?(Class) }
        end
      end
    end
  end
end
