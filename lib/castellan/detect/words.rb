# frozen_string_literal: true

module Castellan
  module Detect
    # Converts model names to English words and association names.
    #
    #   Words.plural(Story::LineItem)     # => "line items"
    #   Words.singular(Story::LineItem)   # => "line_item"
    module Words
      BOUNDARY = /(?<=[a-z\d])(?=[A-Z])/
      private_constant :BOUNDARY

      module_function

      # @return [String]
      def plural(model)
        word = last(model).gsub(BOUNDARY, " ").downcase
        case word
        when /person\z/ then word.sub(/person\z/, "people")
        when /[^aeiou]y\z/ then "#{word[0..-2]}ies"
        when /(?:s|x|ch|sh)\z/ then "#{word}es"
        else "#{word}s"
        end
      end

      # @return [String] "1 line item", "2 line items"
      def counted(number, model) = number == 1 ? "1 #{singular(model).tr("_", " ")}" : "#{number} #{plural(model)}"

      # @return [String]
      def singular(model) = last(model).gsub(BOUNDARY, "_").downcase

      # @return [Boolean] whether the table is named after the model, by the usual conventions
      def table?(model, table)
        words = [plural(model), last(model).gsub(BOUNDARY, " ").downcase].map { |word| word.tr(" ", "_") }
        words.any? { |word| table == word || table.to_s.end_with?("_#{word}") }
      end

      # Chooses among models that share a table.
      # @param models [Array<Class>]
      # @param constants [Array<String>] see {Source#constants}
      # @return [Class, nil] the model that the constants name, with or without its modules; else the first
      def named(models, constants)
        models.find { |model| constants.any? { |name| "::#{model.name}".end_with?("::#{name}") } } || models.first
      end

      def last(model) = model.name.to_s[/\w+\z/] || "Record"
      private_class_method :last
    end
  end
end
