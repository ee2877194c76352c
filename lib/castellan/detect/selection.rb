# frozen_string_literal: true

module Castellan
  module Detect
    # Describes the rows that a statement selects: tables, conditions (without an association's key), order.
    #
    #   asked = Selection.new(group.shape, link)
    #   asked.same?(Selection.declared(link))                              # => true if the association selects the same
    #   asked.same?(Selection.scoped(link, "where(on_behalf: false)"))     # => true if it does with this scope
    #
    # The detector suggests a fix only if it selects the same rows as the statement. Sends no query, but
    # evaluates the application's scopes; if one raises (e.g. outside of a request), the result is nil.
    class Selection
      EQUATION = /\A(\w+) (?:=|is) /
      private_constant :EQUATION

      class << self
        def declared(link) = read(link) { Detect.models(link.model).relation(link) }

        # Selects the association's class by its key, with this scope instead of the declared one.
        # @param code [String] "where(on_behalf: false).order(id: :desc)"
        def scoped(link, code) = of_model(link.target, code, link)

        def of_model(model, code, link = nil)
          return if code.include?("…") # the line does not show all of the code

          read(link) do
            all = Detect.models(model).all(model)
            code.empty? ? all : all.instance_eval(code, __FILE__, __LINE__)
          end
        end

        # Finds an association that loads one record with the same SQL, values included, and can be preloaded.
        # @param code [String] "where(on_behalf: false).order(id: :desc)", on the records of `link`
        # @return [ModelAssociation, nil]
        def declared_one(link, code)
          models = Detect.models(link.model)
          wanted = first_sql(models.relation(link)&.instance_eval(code, __FILE__, __LINE__)) or return
          models.links(link.model).find do |other|
            other.to == :one && other.target == link.target && preloaded?(models, other) && first_sql(models.relation(other)) == wanted
          end
        rescue StandardError, ScriptError
          nil # a scope of the application may raise; then the fix declares an association
        end

        # @return [Boolean, nil] whether a scope in the code has a limit; nil if the line does not show all of it
        def limited?(model, code)
          of_model(model, code)&.limited? unless code.empty?
        end

        # @return [Array<String>] the columns that the association's scope compares with a value
        def columns(link) = link.target ? declared(link)&.columns.to_a : []

        private

        # Whether a preload finds the record that the reader returns: a limit would be that of all owners together.
        def preloaded?(models, link)
          return false if models.limited?(link) || !models.preloads?(link) || !link.model.public_method_defined?(link.name)

          !link.model.instance_method(link.name).owner.is_a?(Class) # the application's own
        end

        def first_sql(found) = found && (one = found.limit(1)).respond_to?(:to_sql) ? one.to_sql : one&.sql

        def read(link)
          found = yield or return
          new(Shape.new(Fingerprint.of(found.respond_to?(:to_sql) ? found.to_sql : found.sql)), link)
        rescue StandardError, ScriptError
          nil
        end
      end

      attr_reader :tables, :conditions, :order

      def limited? = @limited

      # @param link [ModelAssociation, nil] the association whose key to ignore
      # @param without [Array<String>] more columns to ignore
      def initialize(shape, link = nil, without: [])
        @tables = shape.tables.sort
        @conditions = shape.conditions.grep_v(key(link, without)).uniq.sort
        @order = shape.sorted_by
        @limited = shape.single?
      end

      def same?(other, ordered: true)
        !other.nil? && tables == other.tables && conditions == other.conditions && (!ordered || order == other.order)
      end

      def columns = conditions.filter_map { |condition| condition[EQUATION, 1] }

      private

      def key(link, without)
        names = [*link&.keys, *link&.type, *without].map { |name| Regexp.escape(name.to_s) }.join("|")
        /\A#{"#{Regexp.escape(link.through)}\\." if link&.through}(?:#{names}) (?:=|is|in)(?= |\()/
      end
    end
  end
end
