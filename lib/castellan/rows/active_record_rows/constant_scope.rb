# frozen_string_literal: true

require "ripper"

module Castellan
  module Rows
    class ActiveRecordRows
      # Detects association scopes whose SQL is the same in every request, so that it can be generated once.
      #
      #   has_many :roles, -> { order(:id) }                       # constant
      #   has_many :roles, -> { where("sent_at < ?", Time.now) }   # evaluated in every request
      #
      # A scope is constant if its source is a `-> { … }` that calls only the query methods below, with
      # literals. All others count as changing, as do those in files that changed after this process started;
      # that costs only microseconds.
      module ConstantScope
        METHODS = %w[order reorder reverse_order where not rewhere limit distinct].freeze
        STRUCTURE = %i[method_add_arg call fcall vcall command arg_paren args_add_block bare_assoc_hash hash assoclist_from_args assoc_new
                       array symbol_literal symbol dyna_symbol string_literal string_concat string_content bodystmt void_stmt unary
                       var_ref -@ @int @float @tstring_content @label @period @op].freeze
        WRAPPER = "active_record/associations/builder/association.rb"
        STARTED = Time.now
        SOURCES = BoundedCache.new(limit: 500)
        private_constant :METHODS, :STRUCTURE, :WRAPPER, :STARTED, :SOURCES

        # Collects the bodies of a file's lambdas by the line where they begin.
        class Lambdas < Ripper::SexpBuilderPP
          # @return [Hash{Integer => Array}]
          attr_reader :bodies

          def initialize(*)
            super
            @bodies = Hash.new { |bodies, line| bodies[line] = [] }
            @begun = []
          end

          private

          def on_tlambda(token)
            @begun << lineno
            super
          end

          def on_lambda(parameters, body)
            @bodies[@begun.pop] << body
            super
          end
        end
        private_constant :Lambdas

        module_function

        # @param scope [Proc] the scope of an association's reflection
        # @return [Boolean]
        def constant?(scope)
          path, line = written(scope).source_location
          return false unless path && File.file?(path) && File.mtime(path) < STARTED

          bodies = SOURCES.fetch(path) { parsed(path) }.fetch(line, nil)
          !bodies.nil? && bodies.all? { |body| harmless?(body) }
        end

        # Rails wraps a scope without arguments in a block whose local variable `scope` is the original.
        def written(scope)
          binding = scope.binding
          inner = binding.local_variable_defined?(:scope) && binding.local_variable_get(:scope)
          inner.is_a?(Proc) && scope.source_location&.first.to_s.end_with?(WRAPPER) ? inner : scope
        rescue ArgumentError # the scope is a method
          scope
        end

        def parsed(path)
          lambdas = Lambdas.new(File.read(path), path)
          lambdas.parse
          lambdas.error? ? {} : lambdas.bodies
        end

        def harmless?(node)
          return true unless node.is_a?(Array) && node.any?
          return node.all? { |inner| harmless?(inner) } unless node.first.is_a?(Symbol)

          case node.first
          when :@ident then METHODS.include?(node[1])
          when :@kw then %w[nil true false].include?(node[1])
          when :symbol then true
          when :var_ref then node[1].first == :@kw && harmless?(node[1])
          else STRUCTURE.include?(node.first) && node.drop(1).all? { |inner| harmless?(inner) }
          end
        end
        private_class_method :written, :parsed, :harmless?
      end
    end
  end
end
