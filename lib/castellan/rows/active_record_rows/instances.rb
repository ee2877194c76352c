# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # What rows ask of instances of a model: attributes, associations that are loaded, and loading those that are not.
      #
      #   instances = ActiveRecordRows.for(User).instances
      #   instances.read(users, :email)                # => ["ada@example.com", …]
      #   instances.related(user, :roles)              # => [#<Role>, …]
      #
      # A generated reader is passed by for `_read_attribute`, which it calls; nothing else of ActiveRecord's inside is touched.
      class Instances < ObjectInstances
        def initialize(adapter)
          @adapter = adapter
          @model = adapter.model
          super()
        end

        # (see ObjectInstances#read)
        def read(records, name)
          return super unless plain?(records, name)

          column = @adapter.column_name(name)
          records.map { |record| record._read_attribute(column) { missing_attribute(record, column) } }
        end

        # The column's own coder, where Ruby's value is written as the driver's would be.
        # @return [Symbol, nil]
        def coder(records, name)
          coder = @adapter.coder(name) if plain?(records, name)
          coder unless coder == :json
        end

        # @return [Boolean]
        def loaded?(record, name)
          !record.is_a?(::ActiveRecord::Base) || record.new_record? || record.class.reflect_on_association(name).nil? ||
            record.association(name).loaded?
        end

        # @return [Boolean]
        def stored?(records)
          records.all? { |record| record.is_a?(@model) && record.persisted? }
        end

        # @return [Boolean]
        def all?(records)
          records.all?(@model)
        end

        # (see ObjectInstances#preload)
        def preload(records, names)
          ::ActiveRecord::Associations::Preloader.new(records: records, associations: names).call if names.any? && records.any?
        end

        # Preloading leaves out a LIMIT, and cannot group: such an association is loaded record by record.
        def preload_each(records, name)
          preload(records, [name]) if preloads?(records.first, name)
        end

        private

        def preloads?(record, name)
          reflection = record.class.reflect_on_association(name)
          return true if reflection.polymorphic?

          scope = record.association(name).scope
          limited = (scope.limit_value && reflection.collection?) || scope.offset_value
          !limited && !scope.distinct_value && scope.group_values.empty?
        end

        def plain?(records, name)
          @adapter.columns.include?(name) && !@adapter.needs_record?(name) && records.map(&:class).uniq == [@model]
        end

        def missing_attribute(record, column)
          raise ::ActiveModel::MissingAttributeError, "missing attribute '#{column}' for #{record.class}"
        end
      end
    end
  end
end
