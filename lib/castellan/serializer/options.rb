# frozen_string_literal: true

module Castellan
  module Serializer
    # The options of a serializer's instance. Frozen.
    #
    #   options = Options.new(UserSerializer, include: "roles,groups.owner", fields: { user: [:email] })
    #   options.tree               # => { roles: {}, groups: { owner: {} } }
    #   options.fieldset(:user)    # => [:email]
    #
    # The first step of an include must be declared. A later one may be missing, because related records may be of several types.
    class Options
      # Each step of an include costs a statement, and clients choose includes.
      MAX_DEPTH = 10
      MAX_PATHS = 50

      # @return [Hash] params
      # @return [Hash{Symbol => Hash}] what to include
      # @return [Boolean, nil] see {Rows::Together}
      attr_reader :params, :is_collection, :tree, :together

      # @raise [BadRequest] for an include or fields that a client may have sent
      # @raise [ArgumentError] unless params is a Hash
      def initialize(serializer, options)
        @fieldsets = fieldsets_of(options[:fields])
        @params = options[:params] || {}
        raise ArgumentError, "`params` option passed to serializer must be a hash" unless @params.is_a?(Hash)

        @around = options.slice(:meta, :links)
        @is_collection = options[:is_collection]
        @together = Rows::Together.checked(options[:together], "together:")
        @together = serializer.loads_together if @together.nil?
        paths = paths_of(options[:include])
        @tree = tree_of(paths)
        serializer.validate_includes!(paths.map(&:to_sym)) if paths.any?
        freeze
      end

      # @return [Hash] the document's meta and links, if they are not blank
      def around
        { meta: @around[:meta], links: @around[:links] }.reject { |_, value| Serializer.blank?(value) }
      end

      # @param type [Symbol]
      # @return [Array<Symbol>, nil] nil for all members
      def fieldset(type)
        @fieldsets[type&.to_sym]
      end

      # @param members [Hash, nil] by name, as declared
      # @return [Hash] those that are written, in the order of the fields
      def chosen(type, members)
        members ||= {}
        (fields = fieldset(type)) ? members.slice(*fields) : members
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
