# frozen_string_literal: true

require_relative "eager_loading"
require_relative "record_times"

module Castellan
  module Rows
    class ActiveRecordRows
      # Reads attributes and associations of model instances, and preloads associations.
      #
      #   instances = ActiveRecordRows.for(User).instances
      #   instances.read(users, :email)                # => ["ada@example.com", …]
      #   instances.related(user, :roles)              # => [#<Role>, …]
      #
      # Calls `_read_attribute` instead of a generated reader, which would call it too.
      class Instances < ObjectInstances
        def initialize(adapter)
          @adapter = adapter
          @model = adapter.model
          super()
        end

        # (see ObjectInstances#uniform?)
        def uniform?(records)
          records.map(&:class).uniq == [@model]
        end

        # Uses the column's own coder if the Ruby value is written as the driver's value would be.
        # (see ObjectInstances#column)
        def column(records, name)
          return unless @adapter.columns.include?(name) && !@adapter.needs_record?(name)

          coder = @adapter.coder(name)
          written = { json: nil, date: :text, decimal: nil }.fetch(coder, coder) or return
          values = values(records, @adapter.column_name(name), coder)
          values && [values, written]
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

        # (see ObjectInstances#loads_at_once?)
        def loads_at_once?(name)
          EagerLoading.same?(@adapter, @model, name)
        end

        # (see ObjectInstances#preload_where_same)
        def preload_where_same(records, name)
          same = records.group_by(&:class).all? { |model, some| EagerLoading.same?(@adapter, model, name, named(model, name, some)) }
          preload(records, [name]) if same
        end

        private

        # The classes that a polymorphic belongs_to of these records refers to.
        def named(model, name, records)
          return [] unless model.reflect_on_association(name).polymorphic?

          records.filter_map { |record| record.association(name).klass }.uniq
        end

        # Returns dates and times as the encoder reads them fastest; nil if not all are dates (infinity is
        # not).
        def values(records, column, coder)
          case coder
          when :date then dates(read_column(records, column))
          when :datetime then RecordTimes.of(records, column) { |some| times(read_column(some, column)) }
          else read_column(records, column)
          end
        end

        def times(values)
          values.map { |time| ::ActiveSupport::TimeWithZone === time ? time.utc : time } # rubocop:disable Style/CaseEquality
        end

        def dates(values)
          values.map { |date| date&.iso8601 } if values.all? { |date| date.nil? || date.is_a?(::Date) }
        end

        # A block for missing attributes in each read would dominate the cost, so only nil is checked.
        def read_column(records, column)
          records.map do |record|
            value = record._read_attribute(column)
            value.nil? && !record.has_attribute?(column) ? missing_attribute(record, column) : value
          end
        end

        def missing_attribute(record, column)
          raise ::ActiveModel::MissingAttributeError, "missing attribute '#{column}' for #{record.class}"
        end
      end
    end
  end
end
