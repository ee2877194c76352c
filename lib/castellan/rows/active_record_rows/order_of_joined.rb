# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Orders a relation by columns of joined tables and keeps each row once, at its first position.
      #
      #   OrderOfJoined.needed?(User.joins(:roles).order("roles.title"))        # => true
      #   OrderOfJoined.needed?(User.joins(:roles).order(:last_name))           # => false
      #   OrderOfJoined.apply(User.joins(:roles).order("roles.title"), ["id"])   # => users, joined by position
      #
      # An order term that is not clearly a column of the model's table counts as joined: that costs a window
      # function, but the order is right.
      module OrderOfJoined
        TERM = /\A(?:(?<table>[^.\s]+)\.)?(?<column>\S+?)(?:\s+(?:asc|desc))?(?:\s+nulls\s+(?:first|last))?\z/i
        PLACES = Arel::Table.new("castellan_places")
        private_constant :TERM, :PLACES

        module_function

        # @param relation [ActiveRecord::Relation]
        # @return [Boolean]
        def needed?(relation)
          relation.order_values.any? { |term| !own?(term, relation.klass) } && !relation.reverse_order_value
        end

        # @param relation [ActiveRecord::Relation]
        # @param keys [Array<String>] the primary key's columns
        # @return [ActiveRecord::Relation] without the given relation's limit and offset
        def apply(relation, keys)
          model = relation.klass
          names = keys.size == 1 ? { "id" => keys.first } : keys.each_with_index.to_h { |key, index| ["id#{index}", key] }
          ids = relation.unscope(:order, :limit, :offset, :select).except(:distinct)
          ids = ids.reselect(*names.map { |name, key| model.arel_table[key].as(name) }, place(relation))
          list = names.keys.join(", ")
          places = Arel.sql("(SELECT #{list}, MIN(place) AS place FROM (#{ids.to_sql}) castellan_placed GROUP BY #{list}) #{PLACES.name}")
          same = Arel::Nodes::On.new(names.map { |name, key| PLACES[name].eq(model.arel_table[key]) }.reduce(:and))
          model.unscoped.joins(Arel::Nodes::InnerJoin.new(places, same)).order(PLACES[:place].asc)
        end

        def place(relation)
          terms = relation.order_values.map { |term| term.is_a?(String) ? Arel.sql(term) : term }
          Arel::Nodes::NamedFunction.new("ROW_NUMBER", []).over(Arel::Nodes::Window.new.order(*terms)).as("place")
        end
        private_class_method :place

        def own?(term, model)
          case term
          when Arel::Nodes::Ordering then own?(term.expr, model)
          when Arel::Attributes::Attribute then term.relation == model.arel_table
          when String then term.split(",").all? { |part| own_text?(part.strip, model) }
          else false
          end
        end
        private_class_method :own?

        def own_text?(text, model)
          found = TERM.match(text.delete('"`')) or return false
          [nil, model.table_name].include?(found[:table]) && model.columns_hash.key?(found[:column])
        end
        private_class_method :own_text?
      end
    end
  end
end
