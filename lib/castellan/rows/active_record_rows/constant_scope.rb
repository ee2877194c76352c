# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Detects association scopes whose SQL is the same in every request, so that it can be generated once.
      #
      #   ConstantScope.constant?(-> { order(:id) })                        # => true
      #   ConstantScope.constant?(-> { where("sent_at < ?", Time.now) })    # => false
      #
      # A scope is constant if its bytecode calls only the query methods below, on self, with literals. Every
      # other scope counts as changing, as do all scopes on a Ruby without RubyVM; that costs only
      # microseconds.
      module ConstantScope
        METHODS = %i[order reorder reverse_order where not rewhere limit distinct].freeze
        CALLS = %i[opt_send_without_block send].freeze
        LITERALS = %i[putobject putstring duphash duparray].freeze
        SILENT = %i[putself putnil putobject_INT2FIX_0_ putobject_INT2FIX_1_ newhash newarray leave nop].freeze
        PLAIN = [Symbol, String, Integer, Float, TrueClass, FalseClass, NilClass].freeze
        WRAPPER = "active_record/associations/builder/association.rb"
        private_constant :WRAPPER, :METHODS, :CALLS, :LITERALS, :SILENT, :PLAIN

        module_function

        # @param scope [Proc] the scope of an association's reflection
        # @return [Boolean]
        def constant?(scope)
          return false unless defined?(RubyVM::InstructionSequence)

          sequence = RubyVM::InstructionSequence.of(written(scope)) or return false
          sequence.to_a.last.grep(Array).all? { |instruction| harmless?(*instruction) }
        end

        # Rails wraps a scope without arguments in a block whose local variable `scope` is the original.
        def written(scope)
          binding = scope.binding
          inner = binding.local_variable_defined?(:scope) && binding.local_variable_get(:scope)
          inner.is_a?(Proc) && scope.source_location&.first.to_s.end_with?(WRAPPER) ? inner : scope
        end

        def harmless?(name, operand = nil, *rest)
          return true if SILENT.include?(name)
          return plain?(operand) if LITERALS.include?(name)

          CALLS.include?(name) && METHODS.include?(operand[:mid]) && rest.compact.empty?
        end

        def plain?(value)
          case value
          when Hash then value.all? { |key, inner| plain?(key) && plain?(inner) }
          when Array then value.all? { |inner| plain?(inner) }
          else PLAIN.any? { |type| type === value } # rubocop:disable Style/CaseEquality
          end
        end
        private_class_method :written, :harmless?, :plain?
      end
    end
  end
end
