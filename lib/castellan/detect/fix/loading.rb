# frozen_string_literal: true

module Castellan
  module Detect
    class Fix
      # Associations that are loaded where their owners are.
      #
      #   Loading.new(one, { employee: {} }).fix.text
      #   # => "add .preload(:employee) where the users are loaded: app/controllers/users_controller.rb:9"
      class Loading
        # @param one [Verdict::Case] with a link and a parent
        # @param tree [Hash] see {Preload}
        def initialize(one, tree = Preload.path([*one.parent.path, one.link.name]))
          @one = one
          @parent = one.parent
          @tree = tree
        end

        # @param before [String] what must be done first
        # @param after [String] what must be done then; without a declaration there is nothing to try, because the line must be rewritten
        # @param declaration [Hash, nil] see {Finding}
        # @return [Fix]
        def fix(before: "", after: "", declaration: nil)
          reason = refusal
          return Fix.none(reason) if reason

          Fix.new("#{before}#{self}#{after}", preload: (@tree if after.empty? || declaration), declaration: declaration, also: also)
        end

        # @return [Boolean] whether the call is simply added, so that other associations can be in it as well
        def plain? = @parent.walk.nil? || active_record?

        # ActiveRecord loads an association through another with a scope of its own wrongly, or not at all, once the other one or its
        # records are there.
        # @return [Boolean] whether it must stand before others in one call
        def first?
          return false unless active_record? && @parent.path.empty?

          reflection = @one.link.model.reflect_on_association(@one.link.name)
          reflection.through_reflection? && !reflection.scope.nil?
        end

        # @return [String]
        def to_s
          return "add .#{call} where the #{parents} are loaded: #{places}#{last}" if plain?

          # What an association of Sequel answers is an array, to which nothing can be added.
          "write .#{@parent.walk} { |dataset| dataset.#{call} } instead of .#{@parent.walk} where the #{parents} are loaded: #{places}"
        end

        # @return [String]
        def parents = Words.plural(@parent.model)

        # @return [String]
        def places = [@parent.site, *@parent.also].uniq.map { |site| CallSite.location(site) }.join(" and ")

        private

        def models = @one.models
        def active_record? = models == ActiveRecordModels
        def call = "#{models.preload(@tree)}#{models.unlisted unless @parent.count || @parent.path.any?}"
        def also = @parent.also.to_a.map { |site| CallSite.location(site) }
        def source = Source.at(@parent.site)
        def loaded = @parent.loaded || @parent.model

        def refusal
          if @parent.site.nil? then "the #{parents} were loaded where no line of the application was running"
          elsif missing? then of_some
          elsif active_record? && own_sql? then "the #{parents} are loaded by find_by_sql at #{places}, which preloads nothing"
          elsif !active_record? && source.calls?(:paged_each)
            "the #{parents} are loaded by paged_each at #{places}, which loads nothing eagerly"
          end
        end

        def of_some
          "only the #{Words.plural(@one.link.model)} among the #{Words.plural(loaded)} have #{@one.link.name}: load them apart"
        end

        # Another model's may stand on the same line.
        def own_sql?
          names = [@parent.model, loaded].map { |model| model.name.to_s[/\w+\z/] }
          source.calls.any? { |call| call.name == :find_by_sql && [nil, *names].include?(call.receiver&.text.to_s[/\w+\z/]) }
        end

        # A second `eager` of Sequel replaces what is loaded with an association that both name.
        def last
          nested = @tree.any? { |_name, rest| rest.any? }
          " (behind the .eager that is there, or in its place)" if nested && source.calls?(:eager)
        end

        # Follows the path from the class that was loaded. What a polymorphic association leads to may lack one.
        def missing?
          [*@parent.path, @one.link.name].reduce(loaded) do |model, name|
            link = models.link(model, name) or return true
            link.target || (return false)
          end
          false
        end
      end
    end
  end
end
