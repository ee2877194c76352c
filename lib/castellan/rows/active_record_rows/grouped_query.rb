# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Queries the numbers, the ids or the first records of a has_many or has_one for several owners, each in one
      # statement.
      #
      #   query = GroupedQuery.for(user.association(:posts), [ada, alan])   # nil: ask for each owner
      #   query.counts   # => { ada => 3, alan => 0 }, compared by identity
      #
      # For associations of one table whose scope has conditions and an order alone.
      class GroupedQuery
        SIMPLE = %i[where order reordering extending preload readonly].freeze
        private_constant :SIMPLE

        # @param association [ActiveRecord::Associations::Association] of one of the owners
        # @return [GroupedQuery, nil]
        def self.for(association, owners)
          reflection = association.reflection
          return if reflection.through_reflection? || reflection.belongs_to? || reflection.macro == :has_and_belongs_to_many

          query = new(association, owners)
          query if query.possible?
        end

        def initialize(association, owners)
          @reflection = association.reflection
          @model = association.klass
          @owners = owners
          @key = @reflection.join_primary_key
          @owner_key = @reflection.join_foreign_key
        end

        def possible?
          return false if [@key, @owner_key, @model.primary_key].any? { |key| !key.is_a?(String) }

          owner = @owners.first.class
          owner.type_for_attribute(@owner_key).type == @model.type_for_attribute(@key).type && (scope.values.keys - SIMPLE).empty?
        end

        # @return [Hash{ActiveRecord::Base => Integer}]
        def counts
          by_owner(numbers, 0)
        end

        # @return [Hash{ActiveRecord::Base => Array}] primary keys
        def ids
          pairs = related.except(:preload).pluck(@key, @model.primary_key)
          by_owner(pairs.group_by(&:first).transform_values { |some| some.map(&:last) }) { [] }
        end

        # @return [Boolean] whether the scope has an order, so that a has_one is one of many
        def ordered?
          scope.order_values.any?
        end

        # @param by_key [Boolean] whether records without an order are in that of their primary key
        # @return [Hash{ActiveRecord::Base => ActiveRecord::Base, nil}]
        def firsts(by_key: false)
          key = @model.arel_table[@model.primary_key]
          orders = related.arel.orders
          orders = [key.asc] if orders.empty? && by_key
          window = ::Arel::Nodes::Window.new.partition(@model.arel_table[@key]).order(*orders)
          place = ::Arel::Nodes::Over.new(::Arel.sql("ROW_NUMBER()"), window).as("castellan_place")
          places = related.except(:order, :preload).select(key.as("castellan_id"), place).arel.as("castellan_places")
          first = ::Arel::SelectManager.new(places).project(::Arel.sql("castellan_id")).where(::Arel.sql("castellan_place = 1"))
          by_owner(scope.except(:where, :order).where(key.in(first)).to_h { |record| [record._read_attribute(@key), record] })
        end

        private

        def scope
          @scope ||= begin
            all = @reflection.scope ? @model.all.instance_exec(&@reflection.scope) || @model.all : @model.all
            @reflection.type ? all.where(@reflection.type => @owners.first.class.polymorphic_name) : all
          end
        end

        def related
          @related ||= scope.where(@key => keys)
        end

        def numbers
          related.except(:order, :preload).group(@key).count
        end

        def keys
          @keys ||= @owners.map { |owner| owner._read_attribute(@owner_key) }
        end

        def by_owner(found, default = nil)
          @owners.zip(keys).each_with_object({}.compare_by_identity) do |(owner, key), answers|
            answers[owner] = found.fetch(key) { block_given? ? yield : default }
          end
        end
      end
    end
  end
end
