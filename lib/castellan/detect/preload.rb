# frozen_string_literal: true

module Castellan
  module Detect
    # Merges trees of associations and formats them as the arguments of a preload.
    #
    #   tree = Preload.merge({ posts: { comments: {} } }, { posts: { author: {} }, employee: {} })
    #   Preload.arguments(tree)   # => ":employee, posts: [:comments, :author]"
    #
    # A tree is `{ name => tree }`; a leaf is `{}`.
    module Preload
      module_function

      # @param names [Array<Symbol>] `[:posts, :comments]`
      # @return [Hash] `{ posts: { comments: {} } }`
      def path(names) = names.reverse.reduce({}) { |tree, name| { name => tree } }

      # @param tree [Hash] a tree without branches
      # @return [Array<Symbol>] `[:posts, :comments]`
      def names(tree) = tree.flat_map { |name, rest| [name, *names(rest)] }

      # @return [Hash] a new tree with all branches
      def merge(*trees)
        trees.reduce { |one, other| one.merge(other) { |_name, left, right| merge(left, right) } } || {}
      end

      # @return [String] the arguments of `preload`, `includes` or `eager`, as Ruby source
      def arguments(tree)
        leaves = tree.select { |_name, rest| rest.empty? }.keys.map(&:inspect)
        branches = tree.reject { |_name, rest| rest.empty? }.map { |name, rest| "#{name}: #{nested(rest)}" }
        [*leaves, *branches].join(", ")
      end

      # @return [Array<Symbol, Hash>] the same arguments as values: `[:employee, { posts: { comments: {} } }]`
      def list(tree)
        leaves, branches = tree.partition { |_name, rest| rest.empty? }.map(&:to_h)
        branches.empty? ? leaves.keys : [*leaves.keys, branches]
      end

      def nested(tree)
        return arguments(tree) if tree.size == 1 && tree.values.first.empty?

        tree.values.all?(&:empty?) ? "[#{arguments(tree)}]" : braces(tree)
      end
      private_class_method :nested

      def braces(tree)
        return "{ #{arguments(tree)} }" if tree.values.none?(&:empty?)

        leaves, branches = tree.partition { |_name, rest| rest.empty? }.map(&:to_h)
        "[#{arguments(leaves)}, { #{arguments(branches)} }]"
      end
      private_class_method :braces
    end
  end
end
