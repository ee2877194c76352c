# frozen_string_literal: true

require "ripper"

module Castellan
  module Detect
    class Source
      # Parses Ruby source with Ripper, on Rubies without Prism. Blocks and computed values have the text "…",
      # so that no fix repeats them.
      #
      #   RipperParser.parse("user.tokens.last")   # => a {SyntaxNode}
      module RipperParser
        CALLS = %i[call command command_call fcall vcall method_add_arg method_add_block].freeze
        OR = %i[|| && or and].freeze
        private_constant :CALLS, :OR

        module_function

        # @param text [String]
        # @return [SyntaxNode] the parsed source; an empty node after a syntax error
        def parse(text) = node(Ripper.sexp(text) || []).number

        def node(sexp)
          return call(sexp) if CALLS.include?(sexp[0])

          case sexp[0]
          when :paren then sexp[1].is_a?(Array) && sexp[1].one? ? node(sexp[1].first) : other(sexp)
          when :var_ref then variable(sexp)
          when :const_path_ref, :top_const_ref then make(:constant, sexp, text: tokens(sexp).map { |token| token[1] }.join("::"))
          when :assoc_new then pair(sexp)
          when :def then make(:def, sexp, name: sexp[1][1].to_sym, children: nodes(sexp.drop(2)))
          when :@int, :@float then make(:literal, sexp, text: sexp[1])
          when :string_literal, :symbol_literal then literal(sexp)
          when :array then list(sexp, sexp[1] ? arguments(sexp[1]).map { |one| node(one) } : [], "[%s]", ", ")
          when :dot2, :dot3 then list(sexp, nodes(sexp.drop(1).compact), "%s", sexp[0] == :dot2 ? ".." : "...")
          when :bare_assoc_hash, :hash then list(sexp, nodes(sexp[1].to_a), "{ %s }", ", ", :hash)
          when :binary then make(OR.include?(sexp[2]) ? :or : :other, sexp, children: nodes([sexp[1], sexp[3]]))
          else other(sexp)
          end
        end

        # @return [SyntaxNode] the node of a call in any notation
        def call(sexp)
          receiver, name, arguments, block = parts(sexp)
          return other(sexp) unless name.is_a?(Array)

          receiver &&= node(receiver)
          arguments = arguments.flat_map { |one| one[0] == :bare_assoc_hash ? nodes(one[1]) : [node(one)] }
          text = "#{"#{receiver.text}." if receiver}#{name[1]}#{"(#{arguments.map(&:text).join(", ")})" if arguments.any?}"
          make(:call, sexp, name: name[1].to_sym, line: name[2][0], receiver: receiver, arguments: arguments, text: block ? "…" : text,
                            block: block && make(:block, block, children: nodes(block.drop(1))))
        end

        # @return [Array(Array, Array, Array, Array)] receiver, name, arguments, block
        def parts(sexp)
          case sexp[0]
          when :method_add_arg then [*parts(sexp[1])[0, 2], arguments(sexp[2]), nil]
          when :method_add_block then [*parts(sexp[1])[0, 3], sexp[2]]
          when :call then [sexp[1], sexp[3], [], nil]
          when :command_call then [sexp[1], sexp[3], arguments(sexp[4]), nil]
          when :command then [nil, sexp[1], arguments(sexp[2]), nil]
          when :fcall, :vcall then [nil, sexp[1], [], nil]
          end || [nil, nil, [], nil]
        end

        def arguments(sexp)
          sexp = sexp[1] while sexp.is_a?(Array) && %i[arg_paren args_add_block].include?(sexp[0])
          return [] unless sexp.is_a?(Array) && sexp.any?

          sexp[0].is_a?(Symbol) ? [sexp] : sexp # a splat or forwarded arguments
        end

        def variable(sexp)
          token, text = sexp[1]
          kind = { :@ident => :local, :@const => :constant }[token]
          kind ||= :literal if %w[true false nil].include?(text)
          make(kind || :other, sexp, name: (text.to_sym if kind == :local), text: text.to_s)
        end

        def pair(sexp)
          key, value = sexp.drop(1)
          return other(sexp) unless key[0] == :@label && value

          value = node(value)
          make(:pair, sexp, name: key[1].chomp(":"), children: [value], text: "#{key[1]} #{value.text}")
        end

        def list(sexp, all, format, separator, kind = :list)
          make(kind, sexp, children: all, text: format(format, all.map(&:text).join(separator)))
        end

        # A string or symbol without interpolation.
        def literal(sexp)
          parts = sexp[0] == :string_literal ? sexp[1].drop(1) : [sexp.flatten(1).last]
          return other(sexp) unless parts.all? { |part| part.is_a?(Array) && part[1].is_a?(String) }

          text = parts.map { |part| part[1] }.join
          make(:literal, sexp, text: (sexp[0] == :symbol_literal ? text.to_sym : text).inspect)
        end

        def other(sexp) = make(:other, sexp, children: nodes(sexp))

        def nodes(all)
          all = [all] unless all.is_a?(Array)
          all.select { |one| one.is_a?(Array) && one.any? }.flat_map { |one| one[0].is_a?(Symbol) ? [node(one)] : nodes(one) }
        end

        def make(kind, sexp, line: nil, **more)
          lines = tokens(sexp).map { |token| token[2][0] }
          line ||= lines.min || 0
          SyntaxNode.new(kind, line: line, last_line: lines.max || line, **more)
        end

        # @return [Array<Array>] `[:@ident, "name", [line, column]]`
        def tokens(sexp)
          return [] unless sexp.is_a?(Array)
          return [sexp] if sexp[0].is_a?(Symbol) && sexp[0].start_with?("@") && sexp[2].is_a?(Array)

          sexp.flat_map { |part| tokens(part) }
        end
        private_class_method(*singleton_methods(false) - [:parse])
      end
    end
  end
end
