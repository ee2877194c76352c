# frozen_string_literal: true

module Castellan
  module Plan
    # Parses `include` into a tree of relationships, looked up in the declarations.
    #
    #   IncludeTree.parse(definition, "roles,posts.author")            # a client's string
    #   IncludeTree.parse(definition, [:roles, { posts: :author }])    # Ruby
    #   # => { roles: {}, posts: { author: {} } }, in the order of the declarations
    #
    # The depth is limited: for clients by the resource's `include_depth`, for the
    # application's own code by {MAX_DEPTH}. The tree has the order of the declarations, so
    # that two spellings of a request share a plan.
    class IncludeTree
      # The deepest path for the application's own code, unless `include_depth` allows clients more.
      MAX_DEPTH = 5
      # More paths raise BadRequest, because each costs a statement.
      MAX_PATHS = 50
      # In bytes; longer parameters raise BadRequest.
      MAX_BYTESIZE = 2_000

      NOTHING = {}.freeze
      TITLE = "Invalid include"
      private_constant :NOTHING, :TITLE

      # @param definition [Resource::Definition]
      # @param asked [String, Symbol, Array, Hash, nil]
      # @param only [Array<Symbol>, nil] the members of a representation of the resource's own type
      # @param client [Boolean] whether a client sent it; clients may not include
      #   relationships with `include: false`
      # @param fixed [Fields, nil] those that the application fixes: a client may include nothing else
      # @return [Hash{Symbol => Hash}] frozen
      # @raise [BadRequest] with the name of the relationship that cannot be included
      def self.parse(definition, asked, only: nil, client: false, fixed: nil) = new(definition, only, client, fixed).call(asked)

      # @param only [Array<Symbol>, nil]
      def initialize(definition, only, client, fixed)
        @definition = definition
        @only = only
        @fixed = fixed
        @client = client
        @depth = client ? definition.include_depth : [MAX_DEPTH, definition.include_depth].max
      end

      # @return [Hash{Symbol => Hash}]
      def call(asked)
        return NOTHING if asked.nil? || asked == ""

        ordered(@definition.written_as, nest(paths(asked)), [])
      end

      private

      def paths(asked)
        case asked
        when nil, "" then []
        when String then split(asked)
        when Symbol then [[asked.name]]
        when Array then asked.flat_map { |part| paths(part) }
        when Hash then asked.flat_map { |name, rest| [[name.to_s]] + paths(rest).map { |path| [name.to_s, *path] } }
        else refuse("include must be a list of relationship paths, got #{asked.class}")
        end
      end

      def split(text)
        refuse("include is longer than #{MAX_BYTESIZE} bytes") if text.bytesize > MAX_BYTESIZE

        Parameter.text("include", text, title: TITLE).split(",", -1).first(MAX_PATHS + 1).map do |path|
          refuse("include has an empty path; write relationship names divided by commas") if path.empty?
          path.split(".", -1)
        end
      end

      def nest(paths)
        refuse("include names more than #{MAX_PATHS} paths") if paths.size > MAX_PATHS
        paths.each_with_object({}) do |path, tree|
          refuse("include goes deeper than #{@depth} levels: #{path_shown(path)}") if path.size > @depth
          path.reduce(tree) { |level, name| level[name] ||= {} }
        end
      end

      # A polymorphic relationship has several definitions; at least one must
      # have the relationship included below it.
      def ordered(definitions, tree, above)
        return NOTHING if tree.empty?

        wanted = tree.to_h { |name, below| [find(definitions, name, above), [name, below]] }
        relationships(definitions).group_by(&:name).each_with_object({}) do |(symbol, related), level|
          name, below = wanted[symbol]
          level[symbol] = ordered(related.flat_map(&:definitions).uniq, below, [*above, name]) if name
        end.freeze
      end

      def find(definitions, name, above)
        found = definitions.filter_map { |definition| named(definition, name) }.first
        return found if found

        seen = relationships(definitions).reject { |relationship| relationship.condition&.by_viewer } # some viewers may not see the others
        hint = Nearest.hint(Parameter.shown(name), seen.map(&:key).uniq)
        refuse("#{path_shown([*above, name])} is not a relationship of #{definitions.map(&:type).uniq.join(" or ")} " \
               "that can be included#{" in this representation" if cut?(definitions)}#{hint}")
      end

      def named(definition, name)
        symbol = definition.member_named(name) || definition.relationships.each_key.find { |declared| declared.name == name }
        symbol if symbol && relationships([definition]).any? { |relationship| relationship.name == symbol }
      end

      # A relationship that a representation or fixed fields omit cannot be included.
      def relationships(definitions)
        definitions.flat_map do |definition|
          all = definition.relationships.values
          all = all.select(&:includable?) if @client
          all = all.select { |relationship| @fixed.of(definition).include?(relationship.name) } if @fixed
          cut?([definition]) ? all.select { |relationship| @only.include?(relationship.name) } : all
        end
      end

      def cut?(definitions) = @only && definitions.any? { |one| @definition.written_as.any? { |own| own.type == one.type } }

      # Converts the names one by one, because strings of different encodings cannot be joined.
      def path_shown(names) = Parameter.shown(names.map { |name| Parameter.shown(name) }.join("."))
      def refuse(detail) = Parameter.refuse("include", detail, title: TITLE)
    end
  end
end
