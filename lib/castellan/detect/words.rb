# frozen_string_literal: true

module Castellan
  module Detect
    # Names of models as words of a sentence, and as names of associations.
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

      # @return [Boolean] whether a table has its name from this model, as far as names of tables go
      def table?(model, table)
        words = [plural(model), last(model).gsub(BOUNDARY, " ").downcase].map { |word| word.tr(" ", "_") }
        words.any? { |word| table == word || table.to_s.end_with?("_#{word}") }
      end

      # Several models may have one table.
      # @param models [Array<Class>]
      # @param constants [Array<String>] see {Source#constants}
      # @return [Class, nil] the one whose name is written there, with or without the modules around it, or the first
      def named(models, constants) = written(models, constants) || models.first

      # @return [Class, nil] the same, or nil
      def written(models, names)
        models.find { |model| names.any? { |name| "::#{model.name}".end_with?("::#{name}") } }
      end

      def last(model) = model.name.to_s[/\w+\z/] || "Record"
      private_class_method :last
    end
  end
end
