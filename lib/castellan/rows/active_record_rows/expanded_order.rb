# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Replaces SELECT aliases in ORDER BY with their expressions.
      # Rows are read with another SELECT, which lacks them.
      #
      #   ExpandedOrder.of(User.select("users.*, age * 2 AS twice").order("twice DESC"))   # ORDER BY (age * 2) DESC
      module ExpandedOrder
        # Splits at commas; text in parentheses or quotes is one piece. Atomic, so that a parenthesis in a
        # literal does not cause backtracking.
        PIECES = /(?>\((?>\g<0>|,)*\)|'(?:[^']|'')*'|"[^"]*"|`[^`]*`|[^,()'"`])++/
        # The keywords here end an expression; they are not aliases.
        NAMED = /\A(?<expression>.+?)\s+(?:AS\s+)?["`]?(?!(?:\d+|end|null|true|false)\b)(?<name>\w+)["`]?\s*\z/im
        private_constant :PIECES, :NAMED

        module_function

        # @param relation [ActiveRecord::Relation]
        # @return [ActiveRecord::Relation]
        def of(relation)
          return relation if relation.select_values.empty? || relation.order_values.empty?

          names = names(relation)
          names.empty? ? relation : relation.except(:order).order(*relation.order_values.map { |term| expanded(term, names) })
        end

        # @return [Hash{String => String}] expressions by alias, without aliases that are also column names
        def names(relation)
          found = relation.select_values.flat_map { |selected| named(selected, relation.klass) }.to_h
          found.except(*relation.klass.column_names)
        end
        private_class_method :names

        def named(selected, model)
          case selected
          when Arel::Nodes::As then [[selected.right.to_s, text(selected.left, model)]]
          when String then selected.scan(PIECES).filter_map { |piece| NAMED.match(piece.strip)&.values_at(:name, :expression) }
          else []
          end
        end
        private_class_method :named

        def text(expression, model)
          return expression if expression.is_a?(String)

          model.unscoped.select(expression).to_sql.delete_prefix("SELECT ").delete_suffix(" FROM #{model.quoted_table_name}")
        end
        private_class_method :text

        def expanded(term, names)
          case term
          when Arel::Nodes::Ordering
            term.expr.is_a?(String) ? term.class.new(Arel.sql(replaced(term.expr, names))) : term
          when String then Arel.sql(replaced(term, names))
          else term
          end
        end
        private_class_method :expanded

        def replaced(text, names)
          names.reduce(text) do |order, (name, expression)|
            order.gsub(/(?<![\w.'"`])["`]?#{Regexp.escape(name)}["`]?(?![\w.('"`])/i) { "(#{expression})" }
          end
        end
        private_class_method :replaced
      end
    end
  end
end
