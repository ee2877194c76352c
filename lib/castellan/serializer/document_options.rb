# frozen_string_literal: true

module Castellan
  module Serializer
    # Parses the options of a serializer's instance. Frozen.
    #
    #   given = { include: "roles,groups.owner", fields: { user: [:email] } }
    #   options = DocumentOptions.new(UserSerializer, given)
    #   options.tree               # => { roles: {}, groups: { owner: {} } }
    #   options.fieldset(:user)    # => [:email]
    #
    # The first step of an include must be declared. Later steps may be missing, because
    # related records may have several types.
    class DocumentOptions
      # Each step of an include costs a statement, and clients choose includes.
      MAX_DEPTH = 10
      MAX_PATHS = 50

      # @return [Hash] params
      # @return [Hash{Symbol => Hash}] the tree of included relationships
      # @return [Boolean, nil] see {Rows::Together}
      # @return [Hash] the document's meta and links, if they are not blank
      attr_reader :params, :is_collection, :tree, :together, :around

      # @raise [BadRequest] for an invalid include or fields, which a client may have sent
      # @raise [ArgumentError] unless params is a Hash
      def initialize(serializer, options)
        @params = options[:params] || {}
        raise ArgumentError, "`params` option passed to serializer must be a hash" unless @params.is_a?(Hash)

        @fieldsets = present(options[:fields]).to_h { |type, names| [list("fields", [type]).first, list("fields", names)] }
        @around = options.slice(:meta, :links).reject { |_, value| Serializer.blank?(value) }
        @is_collection = options[:is_collection]
        @together = Rows::Together.checked(options[:together], "together:")
        @together = serializer.loads_together if @together.nil?
        paths = list("include", present(options[:include]))
        @tree = tree_of(paths)
        serializer.validate_includes!(paths) if paths.any?
        freeze
      end

      # @return [Array<Symbol>, nil] the fields of the type; nil: all members
      def fieldset(type) = @fieldsets[type&.to_sym]

      # @param members [Hash, nil] members by declared name
      # @return [Hash] the members to write, in the order of the fields
      def chosen(type, members)
        members ||= {}
        (fields = fieldset(type)) ? members.slice(*fields) : members
      end

      private

      def present(given) = Serializer.blank?(given) ? [] : given

      def list(parameter, names)
        names = names.to_a.compact if names.respond_to?(:to_a)
        names = Plan::Parameter.list(parameter, names, title: "Invalid #{parameter}")
        names.reject { |name| Serializer.blank?(name) }.map(&:to_sym)
      end

      def tree_of(paths)
        refuse("include names more than #{MAX_PATHS} paths") if paths.size > MAX_PATHS
        paths.each_with_object({}) do |path, tree|
          names = path.name.split(".")
          refuse("include goes deeper than #{MAX_DEPTH} levels: #{path[0, 60]}") if names.size > MAX_DEPTH

          names.reduce(tree) { |level, name| level[name.to_sym] ||= {} }
        end
      end

      def refuse(detail) = Plan::Parameter.refuse("include", detail, title: "Invalid include")
    end
  end
end
