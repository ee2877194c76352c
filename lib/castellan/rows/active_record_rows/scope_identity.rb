# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Identifies a relation without building its SQL, see {Rows::Scopes::Identity}.
      #
      #   ScopeIdentity.of(viewer.posts)                        # => ["\0Viewer.posts on posts.viewer_id", [7]]
      #   ScopeIdentity.of(Post.where(viewer_id: 7).order(:id)) # => ["\0Post posts Equality …", [7]]
      #   ScopeIdentity.of(Post.joins(:viewer))                 # => nil: its SQL must be built
      module ScopeIdentity
        extend Rows::Scopes::Identity

        MARK = Rows::Scopes::Identity::MARK
        KNOWN = %i[where order limit offset preload].freeze
        COMPARISONS = [
          Arel::Nodes::Equality, Arel::Nodes::NotEqual, Arel::Nodes::GreaterThan, Arel::Nodes::GreaterThanOrEqual, Arel::Nodes::LessThan,
          Arel::Nodes::LessThanOrEqual
        ].to_h { |node| [node, node.name.delete_prefix("Arel::Nodes::").freeze] }.compare_by_identity.freeze
        ORDERS = { Arel::Nodes::Ascending => "asc", Arel::Nodes::Descending => "desc" }.compare_by_identity.freeze
        private_constant :MARK, :KNOWN, :COMPARISONS, :ORDERS

        module_function

        # @param relation [ActiveRecord::Relation]
        # @return [Array(String, Array), nil] shape and values; nil if the relation has anything but conditions on
        #   columns, text conditions, an order and a limit
        def of(relation)
          catch(:unknown) do
            if relation.is_a?(::ActiveRecord::Associations::CollectionProxy)
              association(relation.proxy_association) || relation(relation.scope)
            else
              relation(relation)
            end
          end
        end

        # The scope of an association that declares none is its owner's key.
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
          return unless reflection.macro == :has_many && reflection.scope.nil? && !reflection.options.key?(:through) &&
                        !reflection.options.key?(:as)

          owner = reflection.active_record.name
          key = reflection.join_primary_key
          "#{MARK}#{owner}.#{reflection.name} on #{reflection.klass.table_name}.#{key}" if owner && key.is_a?(String)
        end

        def relation(relation)
          values = relation.values
          values.each_key { |name| throw :unknown unless KNOWN.include?(name) }
          shape = "#{MARK}#{relation.klass.name} #{relation.klass.quoted_table_name}"
          bound = []
          condition(relation.where_clause.ast, shape, bound) if values.key?(:where)
          values[:order]&.each { |term| order(term, shape) }
          %i[limit offset].each { |name| value(values[name], bound) && shape << " " << name.name if values[name] }
          [shape, bound]
        end

        def condition(node, shape, bound)
          case node
          when Arel::Nodes::And then node.children.each { |child| condition(child, shape, bound) }
          when Arel::Nodes::Binary
            column(node.left, shape << " " << (COMPARISONS[node.class] || throw(:unknown)))
            value(operand(node.right), bound)
          when Arel::Nodes::HomogeneousIn
            column(node.attribute, shape << " " << node.type.name)
            value(node.casted_values, bound)
          when Arel::Nodes::Grouping then text(node.expr, shape)
          when Arel::Nodes::BoundSqlLiteral
            text(node.sql_with_placeholders, shape)
            value(node.positional_binds || node.named_binds.flat_map { |name, given| [name.name, given] }, bound)
          else throw :unknown
          end
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
        private_class_method :association, :plain_shape, :relation, :condition, :operand, :order, :column
      end
    end
  end
end
