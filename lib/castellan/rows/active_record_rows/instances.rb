# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Reads attributes and associations of model instances, and preloads associations.
      #
      #   instances = ActiveRecordRows.for(User).instances
      #   instances.read(users, :email)                # => ["ada@example.com", …]
      #   instances.related(user, :roles)              # => [#<Role>, …]
      class Instances < ObjectRows::Instances
        MOST_COLUMNS = 1000
        private_constant :MOST_COLUMNS

        # (see ObjectRows::Instances#initialize)
        def initialize(adapter)
          super
          @columns = BoundedCache.new(limit: MOST_COLUMNS) # by name or alias
        end

        # Does not cast values that were not changed. (see ObjectRows::Instances#rows)
        def rows(records, names)
          return unless defined?(Native)

          plain = names.map { |name| name && plain(name) }
          columns = plain.map { |column, _| column }
          coders = plain.map { |_, coder| coder }
          rows = Native.loaded_rows(records, @model, ::ActiveModel::LazyAttributeSet, columns, coders) or return
          coders.each_with_index { |coder, position| coders[position] = refine_dates(rows, position) if coder == :date }
          [rows, coders]
        end

        def loaded?(record, name)
          own = own?(record, name)
          return true unless own || (record.is_a?(::ActiveRecord::Base) && record.class.reflect_on_association(name))

          record.new_record? || record.association(name).loaded?
        end

        # (see ObjectRows::Instances#related)
        def related(record, name)
          return super unless own?(record, name)

          found = record.public_send(name)
          found.is_a?(::ActiveRecord::Base) ? [found] : list(found)
        end

        def stored?(records) = records.all? { |record| record.is_a?(@model) && record.persisted? }
        def all?(records) = records.all?(@model)

        # (see ObjectRows::Instances#preload)
        def preload(records, names)
          ::ActiveRecord::Associations::Preloader.new(records: records, associations: names).call if names.any? && records.any?
        end

        # (see ObjectRows::Instances#preload_where_same)
        def preload_where_same(records, name)
          same = records.group_by(&:class).all? { |model, some| preloads_same?(model, name, named(model, name, some)) }
          preload(records, [name]) if same
        end

        # Preloading differs from lazy loading for: LIMIT and OFFSET (they apply to all parents together),
        # GROUP BY, FROM, a lock, a SELECT without the key, DISTINCT or several orders on a :through path, a
        # scope on a :through path that uses another of its tables (preloading does not join it), a table that
        # the path joins twice, conditions with an order on a :through path (preloading loses the order), keys
        # that are compared as strings, and inside `scoping(all_queries: true)`.
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

          return false if steps.any? { |_, step| loses_order?(step) }

          relations = relations.flatten(1)
          steps.one? || (relations.count { |relation| relation.order_values.any? } < 2 && !twice?(reflection) &&
                         relations.all? { |relation| alone?(relation) })
        end

        private

        # With a composite primary key, `id` returns the whole key, and not the column of that name.
        def value(record, name)
          return super unless name == :id && record.is_a?(::ActiveRecord::Base) && record.class.composite_primary_key?

          record._read_attribute("id")
        end

        def own?(record, association) = @model.equal?(record.class) && !@model.reflect_on_association(association).nil?

        def named(model, name, records)
          return [] unless model.reflect_on_association(name).polymorphic?

          records.filter_map { |record| record.association(name).klass }.uniq
        end

        def steps(model, reflection)
          return [[model, reflection]] unless reflection.through_reflection?

          through = reflection.through_reflection
          [[model, reflection], *steps(model, through), *steps(through.klass, reflection.source_reflection)]
        end

        # Returns the relations of the step's scopes, or nil if one needs a record
        # or if keys do not compare as strings.
        def relations(owner, step, classes)
          return if classes.any?(&:global_current_scope)
          return unless step.through_reflection? || classes.all? { |klass| ActiveRecordRows.comparable_keys?(owner, step, klass) }
          return classes.select { |klass| ActiveRecordRows.default_scope?(klass) }.map(&:all) unless step.scope
          return if step.scope.arity != 0 || classes.empty?

          classes.map { |klass| klass.all.instance_exec(&step.scope) || klass.all }
        end

        def whole?(relation)
          !relation.limit_value && !relation.offset_value && relation.group_values.empty? && relation.select_values.empty? &&
            !relation.lock_value && relation.from_clause.empty?
        end

        # Returns whether the relation's SQL uses no table that only the :through path would join.
        def alone?(relation)
          names = relation.to_sql.gsub(/'[^']*'/, "").scan(/(\w+)["`]?\./).flatten
          relation.joins_values.any? || (names - relation.table_name.split(".")).empty?
        end

        # To find records by a condition of the scope, preloading joins them to the through records, whose order they then have;
        # records of a `source_type` are queried by themselves.
        def loses_order?(reflection)
          reflection = reflection.active_record._reflect_on_association(reflection.name) # of has_and_belongs_to_many
          return false if !reflection.through_reflection&.collection? || reflection.options[:source_type]

          sources = [reflection]
          sources << sources.last.source_reflection while sources.last.through_reflection?
          found = sources.filter_map { |source| source.scope && reflection.klass.unscoped.instance_exec(&source.scope) }
          found.any? { |relation| relation.where_clause.any? } && found.any? { |relation| relation.order_values.any? }
        end

        def twice?(reflection)
          tables = reflection.chain.map { |link| link.klass.table_name }
          tables != tables.uniq
        end

        def plain(name)
          types = @adapter.types
          column = @columns.fetch(name) { @adapter.columns.include?(name) ? types.name(name) : :none }
          return if column == :none || types.read_by_model?(name)

          coder = types.coder(column)
          coder && [column, coder]
        end

        # PostgreSQL's driver returns dates as objects.
        def refine_dates(rows, position)
          dates = rows.map { |row| row[position] }
          return :date if dates.none? { |date| date.respond_to?(:iso8601) }
          return unless dates.all? { |date| date.nil? || date.instance_of?(::Date) } # infinity is not a Date

          rows.each { |row| row[position] = row[position]&.iso8601 }
          :text
        end
      end
    end
  end
end
