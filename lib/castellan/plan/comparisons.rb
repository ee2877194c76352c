# frozen_string_literal: true

module Castellan
  module Plan
    # Reads the value of a filter on a column: operators with the texts that a client compares with.
    #
    #   Comparisons.parse("filter[age]", "7,8")                                # => { in: ["7", "8"] }
    #   Comparisons.parse("filter[age]", { "gte" => "7", "not" => "8" })       # => { gte: ["7"], not: ["8"] }
    #
    # | operator               | rows                                                                                  |
    # |------------------------|---------------------------------------------------------------------------------------|
    # | `eq`                   | with exactly this value, which may contain commas                                     |
    # | `in`, or no operator   | with one of the values of a list divided by commas                                    |
    # | `not`                  | with none of the values of such a list; rows without a value are among them           |
    # | `gt`, `gte`, `lt`, `lte` | with a greater or smaller value                                                     |
    # | `like`                 | whose text fits, where `*` stands for any characters; as the database's LIKE compares |
    # | `null`                 | without a value (`true`), or with one (`false`)                                       |
    #
    # Several operators must all be true.
    module Comparisons
      LISTS = %w[in not].freeze
      # The operators, in the order of the documentation.
      OPERATORS = %w[eq not in gt gte lt lte like null].freeze
      private_constant :LISTS

      module_function

      # @param name [String] the parameter, for messages
      # @param value [Object] as the framework parsed it
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

      # An empty value is the empty text, not an empty list.
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
