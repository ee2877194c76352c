# frozen_string_literal: true

module Castellan
  module Detect
    # Describes the rows that a statement selects: tables, conditions (except an association's key) and order.
    # The detector compares a fix with the statement before it suggests the fix.
    #
    #   asked = Selection.new(group.shape, link)
    #   asked.same?(Selection.declared(link))                              # => true if the association selects the same
    #   asked.same?(Selection.scoped(link, "where(on_behalf: false)"))     # => true if it does with this scope
    #
    # Sends nothing to the database. Evaluates the application's scopes; if one raises (e.g. outside of a
    # request), the result is nil.
    class Selection
      EQUATION = /\A(\w+) (?:=|is) /
      private_constant :EQUATION

      class << self
        # The selection of the association as declared.
        def declared(link) = read(link) { Detect.models(link.model).relation(link) }

        # The selection of an association with the same class and key and this scope.
        # @param code [String] "where(on_behalf: false).order(id: :desc)"
        def scoped(link, code) = of_model(link.target, code, link)

        # The records of a model that the code selects.
        def of_model(model, code, link = nil)
          return if code.include?("…") # code that the line does not show

          read(link) do
            all = Detect.models(model).all(model)
            code.empty? ? all : all.instance_eval(code, __FILE__, __LINE__)
          end
        end

        # @return [Array<String>] columns that the association's scope compares with a value
        def columns(link) = link.target ? declared(link)&.columns.to_a : []

        private

        def read(link)
          found = yield or return
          new(Shape.new(Fingerprint.of(found.respond_to?(:to_sql) ? found.to_sql : found.sql)), link)
        rescue StandardError, ScriptError
          nil
        end
      end

      attr_reader :tables, :conditions, :order

      # @param link [ModelAssociation, nil] the association whose key is ignored
      # @param without [Array<String>] further ignored columns
      def initialize(shape, link = nil, without: [])
        @tables = shape.tables.sort
        @conditions = shape.conditions.grep_v(key(link, without)).uniq.sort
        @order = shape.sorted_by
      end

      # @param ordered [Boolean] whether to compare the order, too
      def same?(other, ordered: true)
        !other.nil? && tables == other.tables && conditions == other.conditions && (!ordered || order == other.order)
      end

      # @return [Array<String>] columns that are compared by =
      def columns = conditions.filter_map { |condition| condition[EQUATION, 1] }

      private

      def key(link, without)
        names = [*link&.keys, *link&.type, *without].map { |name| Regexp.escape(name.to_s) }.join("|")
        /\A#{"#{Regexp.escape(link.through)}\\." if link&.through}(?:#{names}) (?:=|is|in)(?= |\()/
      end
    end
  end
end
