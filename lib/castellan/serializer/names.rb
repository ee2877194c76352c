# frozen_string_literal: true

module Castellan
  module Serializer
    # Transforms names as jsonapi-serializer does, see {Inflector}.
    #
    #   Names.transform(:last_login_at, :camel_lower)   # => :lastLoginAt
    #   Names.serializer("movie_studios")               # => "MovieStudioSerializer"
    module Names
      module_function

      # @param way [Symbol, nil] nil and unknown ways leave the name as it is
      # @return [Symbol]
      def transform(name, way)
        case way
        when :camel then Inflector.camelize(name.to_s)
        when :camel_lower then Inflector.camelize(name.to_s, lower: true)
        when :dash then name.to_s.tr("_", "-")
        when :underscore then Inflector.underscore(name.to_s)
        else name
        end.to_sym
      end

      # @param name [Symbol, String] of a relationship, a model or a serializer
      # @return [String] the name of the serializer's class, without a namespace
      def serializer(name)
        "#{Inflector.camelize(Inflector.singularize(name.to_s.split("::").last.sub(/.*\./, "")))}Serializer"
      end
    end
  end
end
