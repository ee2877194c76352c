# frozen_string_literal: true

require "ripper"

module Castellan
  module Detect
    class Source
      # Parses Ruby source with Ripper.
      # The text of blocks and interpolated strings is "…", because a fix must not copy them.
      #
      #   Parser.parse("user.tokens.last")   # => a {SyntaxNode}
      class Parser
        OR = %i[|| && or and].freeze
        private_constant :OR

        # @return [SyntaxNode] an empty node if the source has a syntax error
        def self.parse(text) = new.node(Ripper.sexp(text) || [])

        def initialize
          @lines = {}.compare_by_identity
        end

        # @param sexp [Array] a node of Ripper
        def node(sexp)
          case sexp[0]
          when :call, :command, :command_call, :fcall, :vcall, :aref, :method_add_arg, :method_add_block then call(sexp)
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

        private

        # Builds the same node for all notations of a call.
        def call(sexp)
          receiver, name, arguments, block = parts(sexp)
          return other(sexp) unless name.is_a?(Array)

          receiver &&= node(receiver)
          arguments = arguments.flat_map { |one| one[0] == :bare_assoc_hash ? nodes(one[1]) : [node(one)] }
          make(:call, sexp, name: name[1].to_sym, line: name.dig(2, 0), receiver: receiver, arguments: arguments,
                            text: block ? "…" : written(receiver, name[1], arguments.map(&:text).join(", ")),
                            block: block && make(:block, block, children: nodes(block[0].is_a?(Symbol) ? block.drop(1) : block)))
        end

        def written(receiver, name, arguments)
          return "#{receiver.text}[#{arguments}]" if name == "[]"

          "#{"#{receiver.text}." if receiver}#{name}#{"(#{arguments})" unless arguments.empty?}"
        end

        # @return [Array(Array, Array, Array, Array)] receiver, name, arguments, block
        def parts(sexp)
          case sexp[0]
          when :method_add_arg then [*parts(sexp[1])[0, 2], arguments(sexp[2]), passed(sexp[2])]
          when :method_add_block then [*parts(sexp[1])[0, 3], sexp[2]]
          when :call then [sexp[1], sexp[3], [], nil]
          when :command_call then [sexp[1], sexp[3], arguments(sexp[4]), passed(sexp[4])]
          when :command then [nil, sexp[1], arguments(sexp[2]), passed(sexp[2])]
          when :aref then [sexp[1], [:@op, "[]", tokens(sexp[1]).dig(-1, 2)], arguments(sexp[2]), nil]
          when :fcall, :vcall then [nil, sexp[1], [], nil]
          end || [nil, nil, [], nil]
        end

        def arguments(sexp)
          sexp = sexp[1] while sexp.is_a?(Array) && %i[arg_paren args_add_block].include?(sexp[0])
          return [] unless sexp.is_a?(Array) && sexp.any?

          sexp[0].is_a?(Symbol) ? [sexp] : sexp # a splat or forwarded arguments
        end

        # A block passed as an argument: `map(&:name)`.
        def passed(sexp)
          sexp = sexp[1] if sexp.is_a?(Array) && sexp[0] == :arg_paren
          [sexp[2]] if sexp.is_a?(Array) && sexp[0] == :args_add_block && sexp[2]
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

        # A string or symbol without interpolation and escapes.
        def literal(sexp)
          parts = sexp[0] == :string_literal ? sexp[1].drop(1) : [sexp.flatten(1).last]
          return other(sexp) unless parts.all? { |part| part.is_a?(Array) && part[1].is_a?(String) && !part[1].include?("\\") }

          text = parts.map { |part| part[1] }.join
          make(:literal, sexp, text: (sexp[0] == :symbol_literal ? text.to_sym : text).inspect)
        end

        def other(sexp) = make(:other, sexp, children: nodes(sexp))

        def nodes(all)
          all = [all] unless all.is_a?(Array)
          all.select { |one| one.is_a?(Array) && one.any? }.flat_map { |one| one[0].is_a?(Symbol) ? [node(one)] : nodes(one) }
        end

        def make(kind, sexp, line: nil, **more)
          first, last = lines(sexp)
          line ||= first || 0
          SyntaxNode.new(kind, line: line, last_line: last || line, **more)
        end

        # @return [Array(Integer, Integer), Array] the first and the last line of the tokens; empty without
        #   tokens
        def lines(sexp)
          return [] unless sexp.is_a?(Array)

          @lines[sexp] ||= token?(sexp) ? [sexp[2][0]] * 2 : sexp.flat_map { |part| lines(part) }.minmax.compact
        end

        # @return [Array<Array>] `[:@ident, "name", [line, column]]`
        def tokens(sexp)
          return [] unless sexp.is_a?(Array)

          token?(sexp) ? [sexp] : sexp.flat_map { |part| tokens(part) }
        end

        def token?(sexp) = sexp[0].is_a?(Symbol) && sexp[0].start_with?("@") && sexp[2].is_a?(Array)
      end
    end
  end
end
