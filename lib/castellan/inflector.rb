# frozen_string_literal: true

module Castellan
  # Inflects names with ActiveSupport's inflections if they are loaded, else with a few English rules.
  #
  #   Inflector.classify(:group_assignments)   # => "GroupAssignment"
  #   Inflector.underscore("GroupAssignment")  # => "group_assignment"
  module Inflector
    IRREGULAR = { "movies" => "movie", "people" => "person", "children" => "child", "series" => "series",
                  "statuses" => "status" }.freeze
    private_constant :IRREGULAR

    module_function

    # @param name [Symbol, String] the name of an association
    # @param to_many [Boolean] otherwise the name is singular already, also "campus"
    # @return [String] the name of its class: each word capitalized, without acronyms
    def classify(name, to_many: true)
      (to_many ? singularize(name.to_s) : name.to_s).split("_").map { |word| word[0].upcase + word[1..] }.join
    end

    # @return [String]
    def singularize(word)
      return ActiveSupport::Inflector.singularize(word) if defined?(ActiveSupport::Inflector)

      plural = IRREGULAR.keys.find { |irregular| word.end_with?(irregular) }
      plural ? word.delete_suffix(plural) + IRREGULAR[plural] : regular(word)
    end

    # @return [String]
    def pluralize(word)
      return ActiveSupport::Inflector.pluralize(word) if defined?(ActiveSupport::Inflector)

      plural = IRREGULAR.keys.find { |irregular| word.end_with?(IRREGULAR[irregular]) }
      return word.delete_suffix(IRREGULAR[plural]) + plural if plural

      case word
      when /[^aeiou]y\z/ then word.sub(/y\z/, "ies")
      when /(s|sh|ch|x)\z/ then "#{word}es"
      else "#{word}s"
      end
    end

    # @return [String]
    def underscore(name)
      return ActiveSupport::Inflector.underscore(name) if defined?(ActiveSupport::Inflector)

      name.gsub("::", "/").gsub(/([A-Z\d]+)([A-Z][a-z])/, '\1_\2').gsub(/([a-z\d])([A-Z])/, '\1_\2').tr("-", "_").downcase
    end

    # @param lower [Boolean] whether the first letter is lower case
    # @return [String]
    def camelize(name, lower: false)
      return ActiveSupport::Inflector.camelize(name, !lower) if defined?(ActiveSupport::Inflector)

      first = lower ? name.sub(/\A\w/, &:downcase) : name.sub(/\A[a-z\d]*/, &:capitalize)
      first.gsub(/_([a-z\d]*)/i) { Regexp.last_match(1).capitalize }
    end

    def regular(word)
      case word
      when /ies\z/ then word.sub(/ies\z/, "y")
      when /(ss|sh|ch|x)es\z/ then word.sub(/es\z/, "")
      when /ss\z/ then word
      else word.sub(/s\z/, "")
      end
    end
    private_class_method :regular
  end
end
