# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Reads instances of a Sequel model, or the hashes that a dataset returns, and preloads associations.
      #
      #   instances = SequelRows.for(MailLog).instances
      #   instances.loaded?(log, :category)   # => false
      class Instances < ObjectRows::Instances
        def initialize(adapter)
          @adapter = adapter
          @model = adapter.model
          super()
        end

        def loaded?(record, name)
          !record.is_a?(::Sequel::Model) || record.new? || record.class.association_reflection(name).nil? || record.associations.key?(name)
        end

        def all?(records) = records.all? { |record| @model.is_a?(Class) ? record.is_a?(@model) : record.is_a?(Hash) }

        # (see ObjectRows::Instances#preload)
        def preload(records, names)
          names.flat_map { |name| name.is_a?(Hash) ? name.to_a : [[name, nil]] }.each do |name, below|
            missing = records.reject { |record| loaded?(record, name) }
            @model.dataset.eager(below ? { name => below } : name).send(:eager_load, missing) if missing.any?
          end
        end

        # @param name [Symbol] an association
        # @return [Boolean] whether preloading finds the same records as lazy loading
        def loads_at_once?(name)
          reflection = @model.association_reflection(name)
          !reflection[:instance_specific] && reflection[:allow_eager] != false && !@adapter.association(name).mixed_types?
        end

        # (see ObjectRows::Instances#preload_where_same)
        def preload_where_same(records, name)
          records.group_by(&:class).each do |model, some|
            instances = model == @model ? self : @adapter.related(model).instances
            instances.preload(some, [name]) if instances.loads_at_once?(name)
          end
        end

        def stored?(records)
          records.all? { |record| record.is_a?(::Sequel::Model) ? record.is_a?(@model) && !record.new? : !@model.is_a?(Class) }
        end
      end
    end
  end
end
