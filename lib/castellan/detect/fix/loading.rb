# frozen_string_literal: true

module Castellan
  module Detect
    class Fix
      # Writes the fix that preloads associations where the records are loaded.
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

        # @param before [String] an instruction to put before this one
        # @param after [String] an instruction to put after it; the doctor can then try the fix only with a
        #   declaration
        def fix(before: "", after: "", declaration: nil)
          reason = refusal
          return Fix.none(reason) if reason

          Fix.new(text: "#{before}#{self}#{after}", preload: (@tree if after.empty? || declaration), declaration: declaration,
                  also: @parent.also.to_a.map { |site| CallSite.location(site) })
        end

        # @return [Boolean] whether the fix is a plain preload call, to which more associations can be added
        def plain? = active_record? || (@parent.walk.nil? && !joined?)

        # ActiveRecord preloads a through association with a scope wrongly, or not at all, if its source or
        # intermediate records are already loaded.
        # @return [Boolean] whether the association must be the first argument of the call
        def first?
          return false unless active_record? && @parent.path.empty?

          reflection = @one.link.model.reflect_on_association(@one.link.name)
          reflection.through_reflection? && !reflection.scope.nil?
        end

        def to_s
          return "add .#{call} where the #{parents} are loaded: #{places}#{last}" if plain?

          return "nest it in the .eager_graph that loads the #{parents}, as .eager_graph(#{Preload.arguments(@tree)}): #{places}" if joined?

          # Sequel's association methods return arrays, which have no `eager`.
          "write .#{@parent.walk} { |dataset| dataset.#{call} } instead of .#{@parent.walk} where the #{parents} are loaded: #{places}"
        end

        private

        def models = @one.models
        def active_record? = models == ActiveRecordModels
        def parents = Words.plural(@parent.model)
        def places = [@parent.site, *@parent.also].uniq.map { |site| CallSite.location(site) }.join(" and ")
        def call = "#{models.preload(@tree)}#{models.unlisted if @parent.streamed}"
        def loaded = @parent.loaded || @parent.model

        def refusal
          if @parent.site.nil? then "the #{parents} were loaded where no line of the application was running"
          elsif missing?
            "only the #{Words.plural(@one.link.model)} among the #{Words.plural(loaded)} have #{@one.link.name}: load them apart"
          elsif (link = barred) then "#{link} cannot be preloaded: #{models.not_preloaded}"
          elsif lazy? then "the #{parents} are loaded at #{places} by a method that preloads nothing"
          end
        end

        # The line may call find_by_sql of another model, which does not matter.
        def lazy?
          calls = Source.at(@parent.site).calls
          return calls.any? { |call| call.name == :paged_each } unless active_record?

          names = [nil, *[@parent.model, loaded].map { |model| model.name.to_s[/\w+\z/] }]
          calls.any? { |call| call.name == :find_by_sql && names.include?(call.receiver&.text.to_s[/\w+\z/]) }
        end

        # Behind a preload of the attachment alone, ActiveRecord loads the blobs of Active Storage one by one.
        def last
          return nested_eager unless active_record?

          calls = Source.at(@parent.site).calls.select { |call| %i[preload includes].include?(call.name) }
          nested = @tree.filter_map { |name, rest| name.inspect if rest.any? } & calls.flat_map(&:arguments).map(&:text)
          " (in place of #{nested.join(", ")} there)" if nested.any?
        end

        # Sequel's second `eager` replaces the nested associations of the first.
        def nested_eager
          eager = Source.at(@parent.site).calls.select { |call| call.name == :eager } if @tree.any? { |_name, rest| rest.any? }
          return if eager.nil? || eager.empty?
          return " (behind the .eager that is there, or in its place)" if eager.all? { |call| call.arguments.all?(&:constant?) }

          " (in place of the .eager that is there; a block there stays: { block => … })"
        end

        # Sequel's `eager` would read the records of an `eager_graph` again, without the conditions and the order of the JOIN.
        def joined?
          @parent.join && !active_record? && enum_for(:steps).first(@parent.path.size).any? { |link| link&.to == :many }
        end

        # Follows the path from the loaded class. One class of a polymorphic association may lack the next
        # association.
        def missing?
          steps { |link| return true if link.nil? }
          false
        end

        # @return [ModelAssociation, nil] an association of the path that the library does not preload
        def barred
          steps { |link| return link unless models.preloads?(link) }
          nil
        end

        # Yields the associations of the path, up to one without a target or to nil for one that is missing.
        def steps
          [*@parent.path, @one.link.name].reduce(loaded) do |model, name|
            link = models.link(model, name)
            yield link
            link&.target || break
          end
        end
      end
    end
  end
end
