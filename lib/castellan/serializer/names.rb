# frozen_string_literal: true

require_relative "../resource/resource_name"

module Castellan
  module Serializer
    # Names as jsonapi-serializer makes them: by ActiveSupport's inflections where that is loaded, else by the little that
    # names of members and classes need.
    #
    #   Names.transform(:last_login_at, :camel_lower)   # => :lastLoginAt
    #   Names.serializer("movie_studios")               # => "MovieStudioSerializer"
    module Names
      WAYS = { camel: :camel, camel_lower: :camel_lower, dash: :dash, underscore: :underscore }.freeze
      private_constant :WAYS

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
        Resource::ResourceName.singularize(name.to_s)
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

        words = name.split("_").map { |word| word[0].to_s.upcase + word[1..].to_s }.join
        lower ? words[0].to_s.downcase + words[1..].to_s : words
      end
      private_class_method :camelize
    end
  end
end
