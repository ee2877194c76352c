# frozen_string_literal: true

module Castellan
  module Serializer
    # The options that a serializer was given beside the records. Frozen.
    #
    #   options = Options.new(UserSerializer, include: [:roles, "groups.owner"], fields: { user: [:email] })
    #   options.tree               # => { roles: {}, groups: { owner: {} } }
    #   options.fieldset(:user)    # => [:email]
    #
    # `include` is also taken as a client sends it, "roles,groups.owner", and so is a set of fields. A first step that is no
    # relationship is an error; a later one that some record does not have is passed over, because types may differ.
    class Options
      # The deepest include: each step costs a statement, and clients ask for them.
      MAX_DEPTH = 10
      # The most paths.
      MAX_PATHS = 50

      # @return [Hash] params
      # @return [Hash{Symbol => Hash}] what to include
      # @return [Boolean, nil] see {Rows::Together}
      attr_reader :params, :meta, :links, :is_collection, :tree, :together

      # @param options [Hash, nil]
      # @return [Options]
      def self.of(serializer, options)
        new(serializer, options || {})
      end

      def initialize(serializer, options)
        @fieldsets = fieldsets_of(options[:fields])
        @params = options[:params] || {}
        raise ArgumentError, "`params` option passed to serializer must be a hash" unless @params.is_a?(Hash)

        @meta = options[:meta]
        @links = options[:links]
        @is_collection = options[:is_collection]
        @together = Rows::Together.checked(options[:together], "together:")
        @together = serializer.loads_together if @together.nil?
        paths = paths_of(options[:include])
        @tree = tree_of(paths)
        serializer.validate_includes!(paths.map(&:to_sym)) if paths.any?
        freeze
      end

      # @param type [Symbol]
      # @return [Array<Symbol>, nil] nil for all members
      def fieldset(type)
        @fieldsets[type&.to_sym]
      end

      private

      def fieldsets_of(fields)
        return {} if Serializer.blank?(fields)

        fields.to_h { |type, names| [text("fields", type).to_sym, list("fields", names).map(&:to_sym)] }
      end

      def list(parameter, names)
        return names if names.is_a?(Array) && names.all?(Symbol)

        names = text(parameter, names).split(",") if names.is_a?(String)
        [*names].map { |name| text(parameter, name.to_s) }
      end

      # What is no text has no symbol.
      def text(parameter, value)
        refuse(parameter, "#{parameter} is not valid UTF-8 text") if value.is_a?(String) && !value.valid_encoding?

        value
      end

      def paths_of(asked)
        return [] if Serializer.blank?(asked)

        paths = list("include", asked).reject { |path| Serializer.blank?(path) }
        refuse("include", "include names more than #{MAX_PATHS} paths") if paths.size > MAX_PATHS
        paths
      end

      def tree_of(paths)
        paths.each_with_object({}) do |path, tree|
          next tree[path] ||= {} if path.is_a?(Symbol) && !path.name.include?(".")

          names = path.to_s.split(".")
          refuse("include", "include goes deeper than #{MAX_DEPTH} levels: #{path[0, 60]}") if names.size > MAX_DEPTH

          names.reduce(tree) { |level, name| level[name.to_sym] ||= {} }
        end
      end

      def refuse(parameter, detail)
        raise BadRequest.new(detail, parameter: parameter, title: "Invalid #{parameter}")
      end
    end
  end
end
