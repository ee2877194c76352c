# frozen_string_literal: true

module Castellan
  module Detect
    # The change at the line where the parents of a case are loaded, so that associations are loaded with them.
    #
    #   Loading.new(one, { employee: {} }).cure
    #   # => a Cure: "add .preload(:employee) where the users are loaded: app/controllers/users_controller.rb:9"
    #
    # Where the call cannot simply be added it says what can be written: records of raw SQL, an association that only a
    # subclass has.
    class Loading
      RAW = /(?:\b((?:[A-Z]\w*::)*[A-Z]\w*)\.)?find_by_sql\b/
      private_constant :RAW

      # @param one [Verdict::Case] with a link and a parent
      # @param tree [Hash] see {Preload}
      def initialize(one, tree = Preload.path([*one.parent.path, one.link.name]))
        @one = one
        @parent = one.parent
        @tree = tree
      end

      # @param before [String] what must be done first
      # @param after [String] what must be done then
      # @param remedy [Hash] the same for a trial
      # @return [Cure]
      def cure(before: "", after: "", **remedy)
        return placeless if @parent.site.nil?
        return one_by_one if paged_each?
        return refused if alone? && !active_record?

        remedy[:only] = @one.link.model.name if alone?
        remedy[:also] = also if also.any?
        Cure.new(text: there? && after != "" ? already(after) : "#{before}#{self}#{after}", preload: @tree,
                 remedy: remedy.empty? ? nil : remedy)
      end

      # @return [Boolean] whether the association belongs to a subclass of what is loaded
      def alone? = @alone = @alone.nil? ? missing? : @alone

      # @return [Boolean] whether the call is simply added, so that other associations can be in it as well
      def plain? = !alone? && !raw? && (@parent.walk.nil? || active_record?)

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
        return apart if alone?
        return from_walk if @parent.walk && !active_record?

        raw? ? from_raw : "add .#{call} where the #{parents} are loaded: #{places}#{last}"
      end

      private

      # Whether the line loads the association already, and another asks the database again.
      def there? = @one.there && @tree == Preload.path([*@parent.path, @one.link.name])

      def already(after) = "#{@one.link.name} is loaded with the #{parents} already, at #{places}; #{after.delete_prefix(" and ")}"

      def models = @one.models
      def active_record? = models == ActiveRecordModels
      def parents = Words.plural(@parent.model)

      def call = "#{models.preload(@tree)}#{models.unlisted unless @parent.count || @parent.path.any?}"

      def places
        [@parent.site, *@parent.also].uniq.map { |site| CallSite.location(site) }.join(" and ")
      end

      def also = @parent.also.to_a.map { |site| CallSite.location(site) }

      def raw?
        active_record? && WrittenCall.at(@parent.site).scan(RAW).any? { |receiver,| receiver.nil? || loads?(receiver) }
      end

      # Another model's may stand on the same line. A constant may be called by several names, but for its last part.
      def loads?(receiver)
        [@parent.model, loaded].any? { |model| model.name.to_s[/\w+\z/] == receiver[/\w+\z/] }
      end

      def from_raw
        "write #{@parent.model.name}.from(\"(…) #{@parent.model.table_name}\").#{call} instead of find_by_sql where the #{parents} " \
          "are loaded: #{places}"
      end

      # A second `eager` of Sequel says anew what is loaded with an association that both name.
      def last
        nested = @tree.any? { |_name, rest| rest.any? }
        " (behind the .eager that is there, or in its place)" if nested && WrittenCall.at(@parent.site).include?(".eager(")
      end

      # What an association of Sequel answers is an array, to which nothing can be added.
      def from_walk
        "write .#{@parent.walk} { |dataset| dataset.#{call} } instead of .#{@parent.walk} where the #{parents} are loaded: #{places}"
      end

      # Follows the path from the class that was loaded. What a polymorphic association leads to may lack one.
      def missing?
        [*@parent.path, @one.link.name].reduce(@parent.loaded || @parent.model) do |model, name|
          link = models.link(model, name) or return true
          link.target || (return false)
        end
        false
      end

      def apart
        *way, name = Preload.names(@tree)
        records = way.reduce(Words.plural(loaded).tr(" ", "_")) { |code, step| "#{code}.flat_map(&:#{step})" }
        first = "add .#{models.preload(Preload.path(way))} and " if way.any?
        "#{first}load :#{name} for the #{Words.plural(@one.link.model)} alone where the #{Words.plural(loaded)} are loaded: #{places}: " \
          "ActiveRecord::Associations::Preloader.new(records: #{records}.grep(#{@one.link.model.name}), associations: :#{name}).call"
      end

      # Sequel reads a page after the other, but gives one record at a time.
      def paged_each? = !active_record? && @parent.count.nil? && WrittenCall.at(@parent.site).include?(".paged_each")

      def one_by_one
        Cure.refused("paged_each loads nothing eagerly: read the #{parents} a page at a time at #{places}, by " \
                     "#{models.preload(@tree)} and .where { #{models.primary_key(@parent.model)} > last }.limit(…).all")
      end

      # A fiber that a library makes has no line of the application.
      def placeless
        Cure.refused("the #{parents} were loaded where no line of the application was running; .#{call} belongs to the statement that " \
                     "loads them")
      end

      def loaded = @parent.loaded || @parent.model

      def refused
        Cure.refused("only the #{Words.plural(@one.link.model)} among the #{Words.plural(loaded)} have #{@one.link.name}: load them " \
                     "apart, as #{@one.link.model.name}.#{models.preload(@one.link.name => {})}")
      end
    end
  end
end
