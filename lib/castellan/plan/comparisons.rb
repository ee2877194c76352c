# frozen_string_literal: true

module Castellan
  module Plan
    # Parses the value of a filter on a column into operators and the strings to compare with.
    #
    #   Comparisons.parse("filter[age]", "7,8")                                # => { in: ["7", "8"] }
    #   Comparisons.parse("filter[age]", { "gte" => "7", "not" => "8" })       # => { gte: ["7"], not: ["8"] }
    #
    # | operator                 | selects rows                                                              |
    # |--------------------------|---------------------------------------------------------------------------|
    # | `eq`                     | with exactly this value, which may contain commas                         |
    # | `in`, or no operator     | with one of the comma-separated values                                    |
    # | `not`                    | with none of the comma-separated values, or without a value               |
    # | `gt`, `gte`, `lt`, `lte` | with a greater or smaller value                                           |
    # | `like`                   | with matching text, by the database's LIKE; `*` stands for any characters |
    # | `null`                   | without a value (`true`) or with one (`false`)                            |
    #
    # Several operators are combined with AND.
    module Comparisons
      LISTS = %w[in not].freeze
      # In the order in which they are documented.
      OPERATORS = %w[eq not in gt gte lt lte like null].freeze
      private_constant :LISTS

      module_function

      # @param name [String] the query parameter's name, for messages
      # @param value [Object] the value parsed by the framework
      # @return [Hash{Symbol => Array<String>}] frozen
      # @raise [BadRequest]
      def parse(name, value)
        value = value.to_unsafe_h if value.respond_to?(:to_unsafe_h)
        return { in: list(name, value) }.freeze unless value.is_a?(Hash)

        value.to_h { |operator, texts| pair(name, operator.to_s, texts) }.freeze
      end

      def pair(name, operator, texts)
        shown = Parameter.shown(operator)
        parameter = "#{name}[#{shown}]"
        unless OPERATORS.include?(operator)
          Parameter.refuse(parameter, "#{shown.inspect} is no operator#{Nearest.hint(shown, OPERATORS)}")
        end
        [operator.to_sym, LISTS.include?(operator) ? list(parameter, texts) : [single(parameter, texts)].freeze]
      end

      # An empty value is the empty string, not an empty list.
      def list(parameter, value)
        return [""].freeze if value == ""

        Parameter.list(parameter, value, gaps: true).freeze
      end

      def single(parameter, value)
        value = value.to_s if value == true || value == false || value.is_a?(Numeric) || value.is_a?(Symbol)
        Parameter.text(parameter, value)
      end
      private_class_method :pair, :list, :single
    end
  end
end
