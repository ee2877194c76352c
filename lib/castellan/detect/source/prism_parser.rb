# frozen_string_literal: true

module Castellan
  module Detect
    class Source
      # Parses Ruby source with Prism.
      #
      #   PrismParser.parse("user.tokens.last")   # => a {SyntaxNode}
      module PrismParser
        LITERALS = [Prism::IntegerNode, Prism::FloatNode, Prism::StringNode, Prism::SymbolNode, Prism::TrueNode, Prism::FalseNode,
                    Prism::NilNode].freeze
        private_constant :LITERALS

        module_function

        # @param text [String]
        # @return [SyntaxNode] the parts that Prism could parse
        def parse(text) = node(Prism.parse(text).value).number

        def node(prism)
          case prism
          when nil then nil
          when Prism::CallNode then call(prism)
          when Prism::ParenthesesNode then prism.body ? node(prism.body) : make(:other, prism)
          when Prism::StatementsNode then prism.body.one? ? node(prism.body.first) : other(prism)
          when Prism::ConstantReadNode, Prism::ConstantPathNode then make(:constant, prism)
          when Prism::LocalVariableReadNode then make(:local, prism, name: prism.name)
          when Prism::AssocNode then pair(prism)
          when Prism::HashNode, Prism::KeywordHashNode then make(:hash, prism, children: nodes(prism.elements))
          when Prism::ArrayNode then make(:list, prism, children: nodes(prism.elements))
          when Prism::RangeNode then make(:list, prism, children: nodes([prism.left, prism.right].compact))
          when Prism::DefNode then make(:def, prism, name: prism.name, children: nodes([prism.body].compact))
          when *LITERALS then make(:literal, prism)
          else other(prism)
          end
        end

        def call(prism)
          block = prism.block && make(:block, prism.block, children: nodes(prism.block.compact_child_nodes))
          make(:call, prism, name: prism.name, receiver: node(prism.receiver), block: block,
                             arguments: arguments(prism.arguments&.arguments),
                             line: (prism.message_loc || prism.location).start_line)
        end

        # Keyword arguments become pairs.
        def arguments(prism)
          prism.to_a.flat_map { |one| one.is_a?(Prism::KeywordHashNode) ? nodes(one.elements) : [node(one)] }
        end

        def pair(prism)
          key = prism.key
          name = key.unescaped if key.is_a?(Prism::SymbolNode) || key.is_a?(Prism::StringNode)
          make(name ? :pair : :other, prism, name: name, children: [node(prism.value)])
        end

        def other(prism)
          or_else = prism.is_a?(Prism::OrNode) || prism.is_a?(Prism::AndNode)
          make(or_else ? :or : :other, prism, children: nodes(prism.compact_child_nodes))
        end

        def nodes(all) = all.map { |one| node(one) }

        def make(kind, prism, line: prism.location.start_line, **more)
          SyntaxNode.new(kind, line: line, last_line: prism.location.end_line, text: prism.slice.gsub(/\s*\n\s*/, " "), **more)
        end
        private_class_method :node, :call, :arguments, :pair, :other, :nodes, :make
      end
    end
  end
end
