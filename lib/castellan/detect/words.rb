# frozen_string_literal: true

module Castellan
  module Detect
    # Converts model names to English words and association names.
    #
    #   Words.plural(Story::LineItem)       # => "line items"
    #   Words.singular(Story::LineItem)     # => "line_item"
    #   Words.counted(1, Story::LineItem)   # => "1 line item"
    module Words
      module_function

      def plural(model) = Inflector.pluralize(singular(model).tr("_", " "))
      def counted(number, model) = "#{number} #{number == 1 ? singular(model).tr("_", " ") : plural(model)}"
      def singular(model) = Inflector.underscore(model.name.to_s[/\w+\z/] || "Record")

      # Whether the table is named after the model.
      def table?(model, table) = [singular(model), plural(model).tr(" ", "_")].any? { |word| "_#{table}".end_with?("_#{word}") }
    end
  end
end
