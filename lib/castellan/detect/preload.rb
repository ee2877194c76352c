# frozen_string_literal: true

module Castellan
  module Detect
    # Merges trees of associations and formats them as arguments of a preload.
    #
    #   tree = Preload.merge({ posts: { comments: {} } }, { posts: { author: {} }, employee: {} })
    #   Preload.arguments(tree)   # => ":employee, posts: [:comments, :author]"
    #   Preload.list(tree)        # => [:employee, { posts: { comments: {}, author: {} } }]
    #
    # A tree is `{ name => tree }`; a leaf is `{}`.
    module Preload
      class << self
        # @param names [Array<Symbol>] `[:posts, :comments]`
        # @param last [Hash] the tree below the last of them
        # @return [Hash] `{ posts: { comments: {} } }`
        def path(names, last = {}) = names.reverse.reduce(last) { |tree, name| { name => tree } }

        # @param associations [Object] arguments of `preload`, `includes` or `eager`
        # @return [Hash] the tree
        def tree(associations)
          case associations
          when nil, Proc then {} # in Sequel, a block that narrows the dataset
          when Hash then merge(*associations.map { |name, rest| name.is_a?(Proc) ? tree(rest) : { name.to_sym => tree(rest) } })
          when Array then merge(*associations.map { |one| tree(one) })
          else { associations.to_sym => {} }
          end
        end

        # @param tree [Hash] a tree without branches
        # @return [Array<Symbol>] `[:posts, :comments]`
        def names(tree) = tree.flat_map { |name, rest| [name, *names(rest)] }

        # @return [Hash] a new tree
        def merge(*trees) = trees.reduce { |one, other| one.merge(other) { |_name, left, right| merge(left, right) } } || {}

        # @return [String] the arguments of `preload`, `includes` or `eager`, as Ruby source
        def arguments(tree)
          leaves, branches = split(tree)
          [*leaves.map(&:inspect), *branches.map { |name, rest| "#{name}: #{nested(rest)}" }].join(", ")
        end

        # @return [Array<Symbol, Hash>] the arguments as values
        def list(tree)
          leaves, branches = split(tree)
          branches.empty? ? leaves : [*leaves, branches]
        end

        private

        def split(tree)
          branches = tree.reject { |_name, rest| rest.empty? }
          [tree.keys - branches.keys, branches]
        end

        def nested(tree)
          leaves, branches = split(tree)
          all = leaves.map(&:inspect)
          all << "{ #{arguments(branches)} }" if branches.any?
          all.one? ? all.first : "[#{all.join(", ")}]"
        end
      end
    end
  end
end
