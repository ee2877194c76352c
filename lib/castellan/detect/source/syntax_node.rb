# frozen_string_literal: true

module Castellan
  module Detect
    class Source
      # A node of parsed Ruby source.
      #
      #   node.kind       # => :call
      #   node.name       # => :where
      #   node.receiver   # => the node of `user.tokens`
      #   node.arguments  # => [the pair `on_behalf: false`]
      #   node.written    # => "where(on_behalf: false)"
      #
      # `kind` is one of :call, :constant, :literal, :pair, :list, :hash, :local, :block, :def, :or, :other.
      # `line` is where the name of a call is, or where another node begins. `text` is the source, or "…" if
      # the parser omits it.
      class SyntaxNode
        attr_reader :kind, :name, :receiver, :arguments, :block, :line, :last_line, :text, :children
        attr_accessor :parent

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

        # @return [Array<SyntaxNode>] this node and all nodes below, in the order of the source: a receiver
        #   before its call
        def all = [*receiver&.all, self, *(parts - [receiver]).flat_map(&:all)]

        def parts = [receiver, *arguments, block, *children].compact

        def call? = kind == :call

        # @return [Array<SyntaxNode>] the calls from the first receiver to this one
        def chain = call? ? [*receiver&.chain, self] : []

        # @return [Array<SyntaxNode>] nearest first
        def ancestors = parent ? [parent, *parent.ancestors] : []

        # @return [Boolean] whether the value is the same on each evaluation
        def constant?
          case kind
          when :literal then true
          when :constant then !Object.const_get(text).is_a?(Module)
          when :pair, :list, :hash then parts.all?(&:constant?)
          else false
          end
        rescue NameError
          false
        end

        # @return [String] the call without its receiver, with parentheses
        def written = call_with(arguments.map(&:text))

        # @return [String] the same with 0 instead of each value that is not constant, so that it can be
        #   evaluated
        def evaluable = call_with(arguments.map(&:evaluable_text))

        def evaluable_text
          case kind
          when :pair then "#{name}: #{children.first.evaluable_text}"
          when :hash then "{ #{children.map(&:evaluable_text).join(", ")} }"
          else constant? ? text : "0"
          end
        end

        private

        def call_with(texts) = "#{name}#{"(#{texts.join(", ")})" if texts.any?}#{" #{block.text}" if block}"
      end
    end
  end
end
