# frozen_string_literal: true

module Castellan
  module Detect
    class Source
      # A piece of Ruby, whichever parser read it.
      #
      #   node.kind       # => :call
      #   node.name       # => :where
      #   node.receiver   # => the node of `user.tokens`
      #   node.arguments  # => [the pair `on_behalf: false`]
      #   node.written    # => "where(on_behalf: false)"
      #
      # `kind` is one of :call, :constant, :literal, :pair, :list, :hash, :local, :assign, :block, :def, :or, :other; `line` is where a
      # call's name stands, and where anything else begins. `text` is the source, or "…" where the parser does not give it.
      class Node
        attr_reader :kind, :name, :receiver, :arguments, :block, :line, :last_line, :text, :children
        # @return [Node, nil]
        # @return [Integer] its place among all nodes of the file, in the order of the source
        attr_accessor :parent, :order

        def initialize(kind, line:, last_line: line, name: nil, receiver: nil, arguments: [], block: nil, children: [], text: "…")
          @kind = kind
          @name = name
          @receiver = receiver
          @arguments = arguments
          @block = block
          @line = line
          @last_line = last_line
          @children = children
          @text = text
          parts.each { |part| part.parent = self }
        end

        # @return [Node] this one, after all below it were numbered
        def number
          each.with_index { |node, order| node.order = order }
          self
        end

        # Receivers come before what is called on them.
        # @return [Enumerator<Node>] this one and all below it
        def each(&block)
          return enum_for(:each) unless block

          receiver&.each(&block)
          yield self
          (parts - [receiver]).each { |part| part.each(&block) }
        end

        # @return [Array<Node>] those directly below
        def parts = [receiver, *arguments, block, *children].compact

        def call? = kind == :call

        # @return [Array<Node>] the calls from the first receiver to this one
        def chain = call? ? [*receiver&.chain, self] : []

        # @return [Array<Node>] from the nearest
        def ancestors = parent ? [parent, *parent.ancestors] : []

        # @return [Boolean] whether it has the same value each time
        def constant?
          case kind
          when :literal then true
          when :constant then Object.const_defined?(text) && !Object.const_get(text).is_a?(Module)
          when :pair, :list, :hash then parts.all?(&:constant?)
          else false
          end
        rescue NameError
          false
        end

        # @return [Boolean] whether a line lies within
        def covers?(line) = line.between?(self.line, last_line)

        # @return [String] the call alone, with parentheses
        def written = "#{name}#{"(#{arguments.map(&:text).join(", ")})" if arguments.any?}#{" #{block.text}" if block}"

        # The same with a number in the place of each value that is not constant, so that it can be evaluated.
        # @return [String]
        def evaluable = "#{name}#{"(#{arguments.map(&:evaluable_text).join(", ")})" if arguments.any?}#{" #{block.text}" if block}"

        # @return [String]
        def evaluable_text
          case kind
          when :pair then "#{name}: #{children.first.evaluable_text}"
          when :hash then "{ #{children.map(&:evaluable_text).join(", ")} }"
          else constant? ? text : "0"
          end
        end
      end
    end
  end
end
