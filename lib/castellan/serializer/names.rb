# frozen_string_literal: true

module Castellan
  module Serializer
    # Names as jsonapi-serializer makes them: by ActiveSupport's inflections where that is loaded, else by the little that
    # names of members and classes need.
    #
    #   Names.transform(:last_login_at, :camel_lower)   # => :lastLoginAt
    #   Names.serializer("movie_studios")               # => "MovieStudioSerializer"
    module Names
      WAYS = { camel: :camel, camel_lower: :camel_lower, dash: :dash, underscore: :underscore }.freeze
      # Of those that ActiveSupport knows, the ones that names are likely to be.
      IRREGULAR = { "movies" => "movie", "people" => "person", "children" => "child", "series" => "series" }.freeze
      private_constant :WAYS, :IRREGULAR

      module_function

      # @param way [Symbol, nil] nil leaves the name as it is, as what is not known does
      # @return [Symbol]
      def transform(name, way)
        case WAYS[way]
        when :camel then camelize(name.to_s)
        when :camel_lower then camelize(name.to_s, lower: true)
        when :dash then name.to_s.tr("_", "-")
        when :underscore then underscore(name.to_s)
        else name
        end.to_sym
      end

      # @return [String]
      def singularize(name)
        return ActiveSupport::Inflector.singularize(name.to_s) if defined?(ActiveSupport::Inflector)

        irregular = IRREGULAR.keys.find { |plural| name.to_s.end_with?(plural) }
        irregular ? name.to_s.delete_suffix(irregular) + IRREGULAR[irregular] : Resource::ResourceName.singularize(name.to_s)
      end

      # @param name [Symbol, String] of a relationship, a model or a serializer
      # @return [String] the name of the serializer's class, without a namespace
      def serializer(name)
        "#{camelize(singularize(name.to_s.split("::").last.sub(/.*\./, "")))}Serializer"
      end

      def underscore(name)
        return ActiveSupport::Inflector.underscore(name) if defined?(ActiveSupport::Inflector)

        Resource::ResourceName.underscore(name).tr("-", "_")
      end

      def camelize(name, lower: false)
        return ActiveSupport::Inflector.camelize(name, !lower) if defined?(ActiveSupport::Inflector)

        first = lower ? name.sub(/\A\w/, &:downcase) : name.sub(/\A[a-z\d]*/, &:capitalize)
        first.gsub(/_([a-z\d]*)/i) { Regexp.last_match(1).capitalize }
      end
      private_class_method :camelize
    end
  end
end
