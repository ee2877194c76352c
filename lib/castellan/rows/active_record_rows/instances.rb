# frozen_string_literal: true

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
      class Instances < ObjectRows::Instances
        def initialize(adapter)
          @adapter = adapter
          @model = adapter.model
          super()
        end

        # (see ObjectRows::Instances#uniform?)
        def uniform?(records)
          records.map(&:class).uniq == [@model]
        end

        # Uses the column's own coder if the Ruby value is written as the driver's value would be.
        # (see ObjectRows::Instances#column)
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

        # (see ObjectRows::Instances#preload)
        def preload(records, names)
          ::ActiveRecord::Associations::Preloader.new(records: records, associations: names).call if names.any? && records.any?
        end

        # (see ObjectRows::Instances#loads_at_once?)
        def loads_at_once?(name)
          preloads_same?(@model, name)
        end

        # (see ObjectRows::Instances#preload_where_same)
        def preload_where_same(records, name)
          same = records.group_by(&:class).all? { |model, some| preloads_same?(model, name, named(model, name, some)) }
          preload(records, [name]) if same
        end

        # Preloading differs from lazy loading in these cases: LIMIT and OFFSET (they apply to all parents
        # together), GROUP BY, FROM, a lock, a SELECT without the key, DISTINCT or several orders on a :through
        # path, a scope on a :through path that names another of its tables, which is then not joined, a table
        # that the path passes twice, and keys that are compared as strings.
        # @param model [Class] the records' model
        # @param name [Symbol] an association
        # @param related [Array<Class>] for a polymorphic belongs_to, the classes that the records refer to
        # @return [Boolean] whether preloading the association finds the same records as lazy loading
        def preloads_same?(model, name, related = [])
          reflection = model.reflect_on_association(name)
          steps = steps(model, reflection)
          relations = steps.map { |owner, step| relations(owner, step, step.polymorphic? ? related : [step.klass]) }
          return false unless relations.all? && relations.first.all? { |own| whole?(own) }

          passed = relations.drop(1).flatten(1)
          return false unless passed.all? { |relation| whole?(relation) && !relation.distinct_value }

          relations = relations.flatten(1)
          steps.one? || (relations.count { |relation| relation.order_values.any? } < 2 && !twice?(reflection) &&
                         relations.all? { |relation| alone?(relation) })
        end

        private

        # The classes that a polymorphic belongs_to of these records refers to.
        def named(model, name, records)
          return [] unless model.reflect_on_association(name).polymorphic?

          records.filter_map { |record| record.association(name).klass }.uniq
        end

        # The association and those that it goes through, each with its owner model.
        def steps(model, reflection)
          return [[model, reflection]] unless reflection.through_reflection?

          through = reflection.through_reflection
          [[model, reflection], *steps(model, through), *steps(through.klass, reflection.source_reflection)]
        end

        # The relations of the step's scopes; nil if one needs a record, or if keys do not compare as strings.
        def relations(owner, step, classes)
          return unless step.through_reflection? || classes.all? { |klass| ActiveRecordRows.comparable_keys?(owner, step, klass) }
          return classes.reject { |klass| klass.default_scopes.empty? }.map(&:all) unless step.scope
          return if step.scope.arity != 0 || classes.empty?

          classes.map { |klass| klass.all.instance_exec(&step.scope) || klass.all }
        end

        def whole?(relation)
          !relation.limit_value && !relation.offset_value && relation.group_values.empty? && relation.select_values.empty? &&
            !relation.lock_value && relation.from_clause.empty?
        end

        # Whether the relation's SQL names no table but its own.
        def alone?(relation)
          names = relation.to_sql.gsub(/'[^']*'/, "").scan(/(\w+)["`]?\./).flatten
          relation.joins_values.any? || (names - relation.table_name.split(".")).empty?
        end

        def twice?(reflection)
          tables = reflection.chain.map { |link| link.klass.table_name }
          tables != tables.uniq
        end

        # Returns dates and times as the encoder reads them fastest; nil if not all are dates (infinity is
        # not).
        def values(records, column, coder)
          case coder
          when :date then dates(read_column(records, column))
          when :datetime then times(records, column)
          else read_column(records, column)
          end
        end

        # A time that nobody has read or assigned is still the driver's string, in UTC: parsing it only to
        # format it again would dominate the record's cost. The first record is representative.
        def times(records, column)
          return parsed(records, column) unless unread?(records.first, column)

          assigned = :"#{column}_came_from_user?"
          records.map do |record|
            text = record.read_attribute_before_type_cast(column)
            text.is_a?(String) && !record.public_send(assigned) ? text : parsed([record], column).first
          end
        end

        def unread?(record, column)
          record.has_attribute?(column) && record.read_attribute_before_type_cast(column).is_a?(String) &&
            !record.accessed_fields.include?(column)
        end

        def parsed(records, column)
          read_column(records, column).map { |time| ::ActiveSupport::TimeWithZone === time ? time.utc : time } # rubocop:disable Style/CaseEquality
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
