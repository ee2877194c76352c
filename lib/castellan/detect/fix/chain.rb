# frozen_string_literal: true

module Castellan
  module Detect
    class Fix
      # Reads the calls that a line chains to an association: `user.tokens.where(on_behalf: false).last`.
      #
      #   chain = Chain.at(source, link, statement)
      #   chain.finder      # => the node of `last`, the first call after the conditions and the order
      #   chain.constant?   # => true, the conditions are the same for each record
      class Chain
        CONDITIONS = %i[where not exclude filter rewhere].freeze
        ORDERS = %i[order reorder reverse_order reverse].freeze
        FINDERS = /\A(?:find_by|first|last|take|get|any\?|empty\?|count)/
        BATCHES = %i[find_each find_in_batches in_batches paged_each].freeze
        PRELOADS = %i[includes preload eager].freeze
        KEYWORDS = %i[pair hash].freeze
        private_constant :CONDITIONS, :ORDERS, :FINDERS, :BATCHES, :PRELOADS, :KEYWORDS

        # @param statement [Selection] the rows that the statement selects
        # @return [Chain, nil] the chain with the statement's conditions, else the first one; nil if the line
        #   has none
        def self.at(source, link, statement)
          chains = source.steps(link.name, :"#{link.name}_dataset").map { |steps| new(steps, link) }
          chains.find { |chain| Selection.scoped(link, chain.code)&.same?(statement, ordered: false) } || chains.first
        end

        attr_reader :steps
        attr_reader :finder

        def initialize(steps, link)
          @steps = steps
          @model = link.target
          @models = Detect.models(link.model)
          choosing = steps.take_while { |step| condition?(step) || ORDERS.include?(step.name) || one?(step) }
          @finder = steps[choosing.size]
          @conditions = choosing.select { |step| condition?(step) }
          @conditions << @finder if @finder && chooses?(@finder)
        end

        # @param text [Symbol] :text, or :evaluable_text to write 0 instead of computed values
        # @return [String] the conditions as code
        def code(text = :text)
          written = text == :text ? :written : :evaluable
          @conditions.map { |step| condition?(step) ? step.public_send(written) : where(step, text) }.join(".")
        end

        # The record whose association is read; nil for `self`.
        def owner = @steps.first&.receiver&.receiver

        def values = @conditions.flat_map(&:arguments)

        def constant? = @conditions.all? { |step| step.arguments.all?(&:constant?) }

        # @return [Hash] the associations that the calls preload, see {Preload}; without those that the line does not show
        def preloaded
          arguments = @steps.select { |step| PRELOADS.include?(step.name) }.flat_map(&:arguments)
          return {} unless arguments.all?(&:constant?)

          code = "[#{arguments.map(&:text).join(", ")}]"
          Preload.tree(instance_eval(code, __FILE__, __LINE__))
        end

        # Whether a call or a scope takes only some of the records ({Source.limit?}), or batches of them.
        def limited?
          @steps.any? { |step| Source.limit?(step) || BATCHES.include?(step.name) } || Selection.limited?(@model, code(:evaluable_text))
        end

        # Whether a method of the model's class, which may do anything, follows the conditions.
        def opaque?
          @finder && @models == ActiveRecordModels && @model.respond_to?(@finder.name) && !ActiveRecord::Base.respond_to?(@finder.name)
        end

        private

        def condition?(step) = [*CONDITIONS, *PRELOADS].include?(step.name) || @models.scope?(@model, step.name)
        def one?(step) = step.name == :limit && step.arguments.map(&:text) == ["1"]

        # Whether a finder takes conditions. A primary key or a number of records is not a condition.
        def chooses?(step)
          return step.arguments.any? if step.name == :exists?

          step.name.match?(FINDERS) && step.arguments.any? { |one| KEYWORDS.include?(one.kind) }
        end

        def where(step, text)
          key = step.name == :exists? && step.arguments.none? { |one| [*KEYWORDS, :list].include?(one.kind) }
          "where(#{"#{@models.primary_key(@model)}: " if key}#{step.arguments.map(&text).join(", ")})"
        end
      end
    end
  end
end
