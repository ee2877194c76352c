# frozen_string_literal: true

require "ripper"

module Castellan
  module Detect
    class Source
      # Parses Ruby source with Ripper, on Rubies without Prism. Blocks and computed values have the text "…",
      # so that no fix repeats them.
      #
      #   RipperParser.parse("user.tokens.last")   # => a {Node}
      module RipperParser
        NONE = [nil, false, [], 0].freeze
        private_constant :NONE

        module_function

        # @param text [String]
        # @return [Node] the parsed source; an empty node after a syntax error
        def parse(text) = node(Ripper.sexp(text) || []).number

        def node(sexp)
          return call(sexp) if %i[call command command_call fcall vcall method_add_arg method_add_block aref].include?(sexp[0])

          case sexp[0]
          when :paren then sexp[1].is_a?(Array) && sexp[1].one? ? node(sexp[1].first) : other(sexp)
          when :var_ref then variable(sexp)
          when :const_path_ref, :top_const_ref then make(:constant, sexp, text: words(sexp).join("::"))
          when :assign then assign(sexp)
          when :assoc_new then pair(sexp)
          when :bare_assoc_hash, :hash then hash_of(sexp)
          when :array, :dot2, :dot3 then list(sexp)
          when :def then make(:def, sexp, name: sexp[1][1].to_sym, children: nodes(sexp.drop(2)), text: words(sexp).join(" "))
          when :@int, :@float then make(:literal, sexp, text: sexp[1])
          when :string_literal, :symbol_literal then literal(sexp)
          when :binary then make(%i[|| && or and].include?(sexp[2]) ? :or : :other, sexp, children: nodes([sexp[1], sexp[3]]))
          else other(sexp)
          end
        end

        # @return [Node] the node of a call in any notation
        def call(sexp)
          receiver, name, arguments, block = parts(sexp)
          return other(sexp) unless name

          receiver &&= node(receiver)
          arguments = arguments.flat_map { |one| one[0] == :bare_assoc_hash ? hash_of(one).children : [node(one)] }
          make(:call, sexp, name: name[1].to_sym, line: name[2][0], receiver: receiver, arguments: arguments,
                            block: block && make(:block, block, children: nodes(block.drop(1))),
                            text: block ? "…" : call_text(receiver, name[1], arguments.map(&:text)))
        end

        def call_text(receiver, name, arguments)
          return "#{receiver&.text}[#{arguments.join(", ")}]" if name == "[]"

          "#{"#{receiver.text}." if receiver}#{name}#{"(#{arguments.join(", ")})" if arguments.any?}"
        end

        # @return [Array(Array, Array, Array, Array)] receiver, name, arguments, block
        def parts(sexp)
          case sexp[0]
          when :method_add_arg then parts(sexp[1])[0, 2] + [arguments(sexp[2]), nil]
          when :method_add_block then parts(sexp[1])[0, 3] + [sexp[2]]
          when :call then [sexp[1], (sexp[3] if sexp[3].is_a?(Array)), [], nil]
          when :command_call then [sexp[1], sexp[3], arguments(sexp[4]), nil]
          when :command then [nil, sexp[1], arguments(sexp[2]), nil]
          when :fcall, :vcall then [nil, sexp[1], [], nil]
          when :aref then [sexp[1], [:@op, "[]", [first_line(sexp), 0]], arguments(sexp[2]), nil]
          else [nil, nil, [], nil]
          end
        end

        def arguments(sexp)
          sexp = sexp[1] if sexp.is_a?(Array) && sexp[0] == :arg_paren
          sexp = sexp[1] if sexp.is_a?(Array) && sexp[0] == :args_add_block
          return [] if NONE.include?(sexp)

          sexp[0].is_a?(Symbol) ? [sexp] : sexp # a splat or forwarded arguments
        end

        def variable(sexp)
          token, text = sexp[1]
          case token
          when :@ident then make(:local, sexp, name: text.to_sym, text: text)
          when :@const then make(:constant, sexp, text: text)
          when :@kw then make(%w[true false nil].include?(text) ? :literal : :other, sexp, text: text)
          else make(:other, sexp, text: text.to_s)
          end
        end

        def assign(sexp)
          name = sexp[1][1] if sexp[1][0] == :var_field
          return other(sexp) unless name.is_a?(Array) && name[0] == :@ident

          make(:assign, sexp, name: name[1].to_sym, children: [node(sexp[2])])
        end

        def pair(sexp)
          key, value = sexp.drop(1)
          name = key[0] == :@label ? key[1].chomp(":") : plain(key)
          return other(sexp) unless name && value

          value = node(value)
          make(:pair, sexp, name: name, children: [value], text: "#{name}: #{value.text}")
        end

        def hash_of(sexp)
          pairs = sexp[1].is_a?(Array) && sexp[1][0] == :assoclist_from_args ? sexp[1][1] : sexp[1]
          pairs = nodes(pairs.to_a)
          make(:hash, sexp, children: pairs, text: "{ #{pairs.map(&:text).join(", ")} }")
        end

        def list(sexp)
          all = sexp[0] == :array ? nodes(arguments(sexp[1])) : nodes(sexp.drop(1).compact)
          texts = all.map(&:text)
          make(:list, sexp, children: all, text: join(sexp[0], texts))
        end

        def join(kind, texts) = kind == :array ? "[#{texts.join(", ")}]" : texts.join({ dot2: "..", dot3: "..." }[kind])

        def literal(sexp)
          text = plain(sexp)
          return other(sexp) unless text

          make(:literal, sexp, text: sexp[0] == :symbol_literal ? text.to_sym.inspect : text.inspect)
        end

        # @return [String, nil] the text of a string or symbol without interpolation
        def plain(sexp)
          parts = sexp[0] == :string_literal ? sexp[1].drop(1) : [sexp.flatten(1).last]
          return unless %i[string_literal symbol_literal].include?(sexp[0])

          parts.map { |part| part[1] }.join if parts.all? { |part| part.is_a?(Array) && part[1].is_a?(String) }
        end

        def other(sexp) = make(:other, sexp, children: nodes(sexp))

        def nodes(all)
          all = [all] unless all.is_a?(Array)
          all.select { |one| one.is_a?(Array) && one.any? }.flat_map { |one| one[0].is_a?(Symbol) ? [node(one)] : nodes(one) }
        end

        def make(kind, sexp, line: first_line(sexp), **more)
          Node.new(kind, line: line, last_line: lines(sexp).max || line, **more)
        end

        def first_line(sexp) = lines(sexp).min || 0

        def lines(sexp) = tokens(sexp).map { |token| token[2][0] }

        def words(sexp) = tokens(sexp).map { |token| token[1].to_s }

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
