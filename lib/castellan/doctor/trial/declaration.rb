# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # An association that a fix says to declare: its code is evaluated, and the association exists while a block runs, without
      # methods and callbacks.
      #
      #   declaration = Declaration.new(User, 'has_one :last_token, -> { order(id: :desc) }, class_name: "Token"')
      #   declaration.name                                              # => :last_token
      #   declaration.apply { User.preload(:last_token).to_a }
      #
      # The code is what a finding suggests, made of the application's own source.
      class Declaration
        # Takes down what the code declares.
        class Notes
          MACROS = %i[has_one has_many one_to_one one_to_many many_to_many].freeze
          private_constant :MACROS

          attr_reader :macro, :name, :scope, :options, :block

          MACROS.each do |macro|
            define_method(macro) do |name, scope = nil, **options, &block|
              @macro = macro
              @name = name
              @scope = scope
              @options = options
              @block = block
            end
          end
        end
        private_constant :Notes

        # @param owner [Class]
        # @param code [String]
        def initialize(owner, code)
          @owner = owner
          @notes = Notes.new.tap { |notes| notes.instance_eval(code, "the suggested declaration") }
        end

        # @return [Symbol]
        def name = @notes.name

        # @return what the block returned
        def apply(&block)
          Detect.models(@owner) == Detect::SequelModels ? in_sequel(&block) : in_active_record(&block)
        end

        private

        # Subclasses that declare associations of their own have a list of their own.
        def in_active_record
          models = [@owner, *@owner.descendants.reject { |model| model._reflections.equal?(@owner._reflections) }]
          before = models.map(&:_reflections)
          reflection = builder.create_reflection(@owner, name, @notes.scope, @notes.options.dup) # which Rails changes
          models.each { |model| ActiveRecord::Reflection.add_reflection(model, name, reflection) }
          yield
        ensure
          models.zip(before.to_a).each { |model, reflections| restore(model, reflections) if reflections }
        end

        def builder
          @notes.macro == :has_one ? ActiveRecord::Associations::Builder::HasOne : ActiveRecord::Associations::Builder::HasMany
        end

        def restore(model, reflections)
          model.clear_reflections_cache
          model._reflections = reflections
        end

        def in_sequel
          reflections = @owner.association_reflections
          raise Error, "#{@owner} is frozen, so that no association can be declared for the trial" if reflections.frozen?

          subclass = Class.new(@owner)
          subclass.public_send(@notes.macro, name, **@notes.options, &@notes.block)
          reflections[name] = subclass.association_reflection(name)
          yield
        ensure
          reflections&.delete(name) unless reflections.frozen?
        end
      end
    end
  end
end
