# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Implements {Rows::Scopes} with ActiveRecord relations.
      class Scopes < Rows::Scopes
        WHOLE = %i[order references extending select limit].freeze
        PLAIN = %i[where order references extending having].freeze
        WINDOW = %i[order limit offset lock readonly].freeze
        INSTANCES = %i[includes preload eager_load].freeze # affect instances only
        UNUSUAL = %i[select from group having joins left_outer_joins eager_load includes].freeze
        OF_LIBRARY = %i[all relation default_scoped unscoped].freeze

        # An order by a path, which needs only the model's own table.
        class PathSQL < Arel::Nodes::SqlLiteral
        end
        private_constant :WHOLE, :PLAIN, :WINDOW, :INSTANCES, :UNUSUAL, :OF_LIBRARY, :PathSQL

        def initialize(adapter)
          model = adapter.model
          @all = model.unscoped if !ActiveRecordRows.hides_rows?(model) && OF_LIBRARY.all? { |name| library?(model.method(name)) }
          @inherits_no_scope = model.base_class?
          @rewritten = ActiveRecordRows.rewritten?(model)
          super(adapter, Array(model.primary_key).map(&:to_sym))
        end

        # Without the records that a relation has loaded, perhaps before the version was read.
        # @param object [Class, ActiveRecord::Relation]
        # @return [ActiveRecord::Relation]
        def from(object)
          return object.all if object.is_a?(Class)

          object.respond_to?(:loaded?) && object.loaded? ? object.spawn : object
        end

        # @return [ActiveRecord::Relation] all rows
        def all = @all && model.current_scope.nil? && model.default_scopes.empty? ? @all.clone : model.all

        # @return [Boolean] whether the object can be passed to {Adapter#fetch}
        def own?(object) = object.is_a?(::ActiveRecord::Relation) && object.klass <= model

        # @return [String, nil] why the records must be loaded: SQL cannot select
        #   each row once in the scope's order
        def reason(scope)
          return if scope.is_a?(Ids::Chosen)

          values = scope.values
          if @unreadable || !values.keys.intersect?(UNUSUAL) then @unreadable
          elsif values.key?(:from) then "it has a FROM of its own"
          elsif expressions?(scope) then "it selects something else than columns"
          elsif values.key?(:group) || scope.having_clause.any? then "it has GROUP BY or HAVING" # `or` leaves an empty HAVING
          elsif repeats?(scope) && !own_order?(scope)
            "it joins tables, and its order is not made of its own columns alone, as in order(name: :desc)"
          end
        end

        # Loads the records of a scope, each once, in one statement through the caller's relation.
        # @param whole [Boolean] select all columns, unless the scope selects expressions
        # @return [Array<ActiveRecord::Base>]
        def load(scope, whole: false)
          relation = narrowed(scope)
          expressions = expressions?(relation)
          relation = relation.except(:select) if whole && !expressions
          plain = relation.group_values.empty? && !relation.distinct_value && !expressions
          relation = at_keys(relation) if plain && limited?(relation) && repeats?(relation)
          relation.to_a.uniq
        end

        # (see Rows::Scopes#bound)
        def bound(scope) = (ScopeIdentity.of(scope.is_a?(Ids::Chosen) ? scope.relation : scope) unless @rewritten)

        # (see Rows::Scopes#constant_identity)
        def constant_identity
          return if hide_rows? || !unscoped?

          super.freeze if OF_LIBRARY.all? { |name| library?(model.method(name)) }
        end

        # (see Rows::Scopes#unscoped?)
        def unscoped?
          return false if ActiveRecordThread.associations_scoped?

          registry = ::ActiveRecord::Scoping::ScopeRegistry.instance
          registry.current_scope(model).nil? && registry.global_current_scope(model).nil?
        end

        # (see Rows::Scopes#default_context)
        def default_context = (::Time.zone_default || false if ActiveRecordThread.default?(model, @inherits_no_scope))

        # (see Rows::Scopes#connection_name)
        def connection_name = model.connection_specification_name

        # @return [Boolean] whether the relation adds only conditions and an order to the model
        def plain?(relation)
          relation.klass == model && (relation.values.keys - PLAIN).empty? && relation.having_clause.empty?
        end

        # @return [Boolean] whether a join can be added; false for locked rows, and for scopes without an
        #   order, because a join would change the order in which the database returns the rows
        def joinable?(scope) = scope.order_values.any? && scope.lock_value.nil?

        # @return [Symbol, Integer, nil] :all without conditions and limit; the limit (0 with DISTINCT or a
        #   lock, so that only unique paths are joined); nil if neither is known
        def extent(scope)
          return scope.limit_value.to_i if scope.limit_value
          return 0 if scope.distinct_value || scope.lock_value

          :all if (scope.values.keys - WHOLE).empty?
        end

        # @return [Boolean] whether {#select_by_ids_sql} is constant; with STI,
        #   loading a subclass changes the SQL
        def constant_by_ids? = !model.finder_needs_type_condition? && !@rewritten

        # @return [Boolean] whether a default scope or STI hides rows of the table
        def hide_rows? = ActiveRecordRows.hides_rows?(model)

        # @return [Boolean] whether the relation selects anything other than columns of its table
        def expressions?(relation) = !relation.select_values.all? { |selected| columns?(selected) }

        # @!group Used by {Association::LazyStatement}

        def select(relation, list, joins = nil)
          (joins ? relation.joins(joins) : relation).reselect(Arel.sql(list)).to_sql
        end

        def sql(relation) = relation.to_sql
        def raw(sql) = Arel.sql(sql)
        def terms(relation) = relation.order_values
        def reorder(relation, terms) = relation.reorder(*terms)
        def unqualified_order?(relation) = relation.order_values.any? { |term| term.is_a?(String) && !term.include?(".") }
        def unordered(relation) = without(relation, [:order])
        def unlimited(relation) = without(relation, %i[limit offset])

        # The first row is also the first distinct row; with DISTINCT, PostgreSQL requires the order columns
        # in the SELECT list.
        def first(relation) = (relation.offset_value ? relation : relation.except(:distinct)).limit(1)
        def distinct?(relation) = relation.distinct_value
        def grouped?(relation) = relation.group_values.any?
        def locked?(relation) = !relation.lock_value.nil?
        def either?(_relation) = false
        def joins?(relation) = relation.joins_values.any? || relation.left_outer_joins_values.any?

        # @!endgroup

        def where_sql(relation, sql) = relation.where(Arel.sql(sql))

        private

        def columns?(selected)
          case selected
          when Symbol, String
            selected.to_s.split(",").all? { |part| column?(part.delete('"`').strip.delete_prefix("#{model.table_name}.")) }
          when Arel::Attributes::Attribute then selected.relation == model.arel_table
          else false
          end
        end

        def column?(name) = name == "*" || model.columns_hash.key?(name) || model.attribute_aliases.key?(name)

        def own_order?(relation)
          relation.order_values.all? do |term|
            next false unless term.is_a?(Arel::Nodes::Ordering)

            term.expr.is_a?(PathSQL) || (term.expr.is_a?(Arel::Attributes::Attribute) && term.expr.relation == model.arel_table)
          end
        end

        def repeats?(relation) = !keys.nil? && (joins?(relation) || relation.eager_loading?)

        # Removes the lock and values that affect instances only, and joins
        # tables instead of eager loading them.
        def bare(relation)
          if relation.eager_loading?
            included = relation.includes_values if relation.references_values.any?
            relation = relation.left_outer_joins(*relation.eager_load_values, *included)
          end
          without(relation, [*INSTANCES, :lock])
        end

        def plain(relation) = without(relation, [*INSTANCES, :select, *(:distinct if keys)])
        def fresh(_relation) = model.unscoped
        def with_window(relation, other) = relation.merge(other.only(*WINDOW))

        # Returns the relation itself if it has none of these values, because `except` would copy it.
        def without(relation, values) = relation.values.keys.intersect?(values) ? relation.except(*values) : relation

        def with_values(relation, columns, values)
          columns.is_a?(Array) && values.empty? ? relation.none : relation.where(columns => values)
        end

        # An order without a table may name other columns of the SELECT list.
        def values(relation, columns)
          relation = relation.except(:select, :preload)
          return relation.pluck(*Array(columns).map { |column| model.arel_table[column] }) unless unqualified_order?(relation)

          relation.map { |record| columns.is_a?(Array) ? columns.map { |column| record[column] } : record[columns] }
        end

        def library?(method) = method.owner.name&.start_with?("ActiveRecord::")
        def records(relation) = relation.to_a
        def everything = model.unscoped
        def surroundings = [::Time.zone&.name, model.current_shard]

        def value(sql)
          ActiveRecordRows.lease(model) { |connection| connection.select_value(sql, "#{model.name} Count") }
        end

        def term(_scope, column, direction)
          (column.is_a?(ComparedColumn) ? PathSQL.new(column.sql) : model.arel_table[types.name(column)]).public_send(direction)
        end

        def further_order(relation, terms) = relation.order(*terms)

        def by_key(scope, direction) = [term(scope, primary_key, direction)]

        def apart?(relation) = relation.select_values.any? || (relation.distinct_value && limited?(relation))

        # Default scopes, STI, `none`, `readonly` and `scoping` blocks also appear in a relation's values.
        def whole?(scope)
          scope.is_a?(::ActiveRecord::Relation) && scope.klass == model && scope.values.empty? && constant_by_ids?
        end

        # Identifies a relation without building its SQL, see {Rows::Scopes::Identity}.
        #
        #   ScopeIdentity.of(viewer.posts)                        # => ["\0Viewer.posts on …", [7]]
        #   ScopeIdentity.of(Post.where(viewer_id: 7).order(:id)) # => ["\0Post posts Equality …", [7]]
        #   ScopeIdentity.of(Post.joins(:viewer))                 # => nil: its SQL must be built
        module ScopeIdentity
          extend Rows::Scopes::Identity

          MARK = Rows::Scopes::Identity::MARK
          KNOWN = %i[where order limit offset joins distinct preload includes references having].freeze
          COMPARISONS = [
            Arel::Nodes::Equality, Arel::Nodes::NotEqual, Arel::Nodes::GreaterThan, Arel::Nodes::GreaterThanOrEqual, Arel::Nodes::LessThan,
            Arel::Nodes::LessThanOrEqual
          ].to_h { |node| [node, node.name.delete_prefix("Arel::Nodes::").freeze] }.compare_by_identity.freeze
          ORDERS = { Arel::Nodes::Ascending => "asc", Arel::Nodes::Descending => "desc" }.compare_by_identity.freeze
          private_constant :MARK, :KNOWN, :COMPARISONS, :ORDERS

          module_function

          # @param relation [ActiveRecord::Relation]
          # @return [Array(String, Array), nil] shape and values; nil if the relation has more than conditions
          #   on columns, conditions as text, an order and a limit
          def of(relation)
            catch(:unknown) do
              if relation.is_a?(::ActiveRecord::Associations::CollectionProxy)
                association(relation.proxy_association) || relation(relation.scope)
              else
                relation(relation)
              end
            end
          end

          # The owner's key identifies the relation if there are no scopes. ActiveRecord memoizes the scope of an association, so
          # no other value may be identified without its relation.
          def association(association)
            reflection = association.reflection
            shape = plain_shape(reflection) or return
            model = association.klass
            return if ActiveRecordRows.default_scope?(model) || model.finder_needs_type_condition? ||
                      model.current_scope || model.global_current_scope ||
                      association.owner.new_record?

            key = association.owner._read_attribute(reflection.join_foreign_key)
            [shape, [key]] if key.is_a?(Integer) || key.instance_of?(String)
          end

          def plain_shape(reflection)
            return unless reflection.macro == :has_many && reflection.scope.nil?
            return if %i[through as primary_key].intersect?(reflection.options.keys)

            owner = reflection.active_record.name
            key = reflection.join_primary_key
            "#{MARK}#{owner}.#{reflection.name} on #{reflection.klass.table_name}.#{key}" if owner && key.is_a?(String)
          end

          def relation(relation)
            values = relation.values
            values.each_key { |name| throw :unknown unless KNOWN.include?(name) }
            throw :unknown if relation.eager_loading? || relation.having_clause.any?
            shape = "#{MARK}#{relation.klass.name} #{relation.klass.quoted_table_name}"
            bound = []
            values[:joins]&.each { |node| join(node, shape) }
            condition(relation.where_clause.ast, shape, bound) if values.key?(:where)
            shape << " distinct" if values[:distinct]
            shape << " order" if values[:order]
            values[:order]&.each { |term| order(term, shape) }
            %i[limit offset].each { |name| value(values[name], bound) && shape << " " << name.name if values[name] }
            [shape, bound]
          end

          def condition(node, shape, bound)
            case node
            when Arel::Nodes::And, Arel::Nodes::Or then several(node, shape, bound)
            when Arel::Nodes::Not then condition(node.expr, shape << " Not", bound)
            when Arel::Nodes::Between
              limits = node.right.is_a?(Arel::Nodes::And) ? node.right.children : throw(:unknown)
              column(node.left, shape << " Between")
              limits.each { |limit| value(operand(limit), bound) }
            when Arel::Nodes::Binary
              column(node.left, shape << " " << (COMPARISONS[node.class] || throw(:unknown)))
              value(operand(node.right), bound)
            when Arel::Nodes::HomogeneousIn
              column(node.attribute, shape << " " << node.type.name)
              value(node.casted_values, bound)
            when Arel::Nodes::Grouping
              node.expr.is_a?(Arel::Nodes::Node) ? condition(node.expr, shape << " Grouping", bound) : text(node.expr, shape)
            when Arel::Nodes::BoundSqlLiteral
              text(node.sql_with_placeholders, shape)
              value(node.positional_binds || node.named_binds.flat_map { |name, given| [name.name, given] }, bound)
            else throw :unknown
            end
          end

          # As associations through others write it.
          def join(node, shape)
            on = node.right.expr if node.instance_of?(Arel::Nodes::LeadingJoin)
            throw :unknown unless on.instance_of?(Arel::Nodes::Equality) && node.left.equal?(on.right.relation)
            [on.left, on.right].each { |side| column(side, shape << " join") }
          end

          def several(node, shape, bound)
            children = node.is_a?(Arel::Nodes::Binary) ? [node.left, node.right] : node.children # an Or of Rails 7.1 has two
            shape << (node.is_a?(Arel::Nodes::And) ? " And" : " Or") << children.size.to_s
            children.each { |child| condition(child, shape, bound) }
          end

          def operand(node)
            case node
            when ActiveModel::Attribute, Arel::Nodes::Casted then node.value_for_database
            when Arel::Nodes::BindParam then node.value.value_for_database
            when nil then nil
            else throw :unknown
            end
          rescue ActiveModel::RangeError
            throw :unknown
          end

          def order(term, shape)
            return text(term, shape) if term.is_a?(String)

            column(term.expr, shape << " " << (ORDERS[term.class] || throw(:unknown)))
          end

          def column(attribute, shape)
            table = attribute.relation if attribute.is_a?(Arel::Attributes::Attribute)
            throw :unknown unless table.is_a?(Arel::Table)

            [table.name, table.table_alias, attribute.name].each { |name| shape << MARK << name.to_s }
          end
          private_class_method :association, :plain_shape, :relation, :condition, :join, :several, :operand, :order, :column
        end
      end
    end
  end
end
