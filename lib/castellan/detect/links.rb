# frozen_string_literal: true

module Castellan
  module Detect
    # Finds the association that a group of statements belongs to.
    #
    #   links = Links.new(tally)
    #   links.walk?(group)   # => true if these are the association's own queries, as declared
    #   links.of(group)      # => a {ModelAssociation}, or nil
    #
    # This is the observed association, or for other queries (`user.posts.count`) one with the same table and
    # key, among the models that were loaded or reached by an association. Prefers the association that the
    # source line names, then the one whose scope has the queried columns. {#rivals} returns the others that
    # match equally well.
    class Links
      def initialize(tally)
        @groups = tally.groups
        @loads = tally.loads
        @scoped = {}.compare_by_identity
        @narrowed = {}.compare_by_identity
        @asked = {}.compare_by_identity
        @preloads = {}
        @tables = {}
      end

      # Whether these are the own queries of the observed association, not those of a callback or a nested
      # preload.
      def walk?(group)
        link = witnessed(group)
        link ? link.target.nil? || group.shape.tables.intersect?([link.table, link.through]) : false
      end

      # @return [ModelAssociation, nil] the association of the group
      def of(group)
        return (witnessed(group) if walk?(group)) if group.association

        fitting(group).min_by { |link| rank(link, group) }
      end

      # @param link [ModelAssociation] the group's association
      # @return [Array<ModelAssociation>] the model's other associations that match as well; empty if one was
      #   observed
      def rivals(group, link)
        return [] if group.association || link.nil?

        fitting(group).select { |other| other != link && other.model == link.model && rank(other, group) == rank(link, group) }
      end

      # Whether the group may be a preload for the records that `other` read.
      def preloads?(other, group)
        library = group.shape.library
        key = [library, other.shape.table, group.shape.table]
        @preloads.fetch(key) do
          @preloads[key] = library.of_table(other.shape.table).any? { |model| leads_to?(library, model, group.shape.table) }
        end
      end

      # Whether the group compares another owner of `other`'s records in each statement, beside a list of something else.
      def owners_vary?(other, group)
        library = group.shape.library
        links = library.of_table(other.shape.table).flat_map { |model| library.links(model) }
        group.pieces && group.pieces.varies?(links.select { |link| link.tables.include?(group.shape.table) }.flat_map(&:keys).uniq)
      end

      private

      def leads_to?(library, model, table)
        tables = @tables[model] ||= library.polymorphic(model).any? ? [nil] : library.links(model).flat_map(&:tables)
        tables.include?(table) || tables.include?(nil)
      end

      def witnessed(group) = group.association && Detect.models(group.owner)&.link(group.owner, group.association)

      def fitting(group)
        candidates.select do |link|
          link.asked_by?(group.shape) && asked_anew?(link, group) && of_class?(link, group) && selects?(link, group)
        end
      end

      # A statement without a limit is not that of an association with a limit, or with a scope that takes the owner, unless
      # the line names it.
      def selects?(link, group)
        group.shape.single? || named?(link, group) || !@narrowed.fetch(link) { @narrowed[link] = narrowed?(link) }
      end

      def narrowed?(link)
        models = Detect.models(link.model)
        link.target && (models.limited?(link) || models.relation(link).nil?)
      rescue StandardError, ScriptError
        false # a scope of the application may raise
      end

      def named?(link, group) = Source.at(group.busiest).names?(link.name, :"#{link.name}_dataset")

      # The statements of a polymorphic association name the class of the owners.
      def of_class?(link, group)
        name = link.type && group.pieces&.steady_value(link.type)
        name.nil? || name == link.model.polymorphic_name
      end

      def rank(link, group)
        scoped = @scoped[link] ||= Selection.columns(link)
        asked = @asked[group] ||= Selection.new(group.shape).columns
        named = named?(link, group)
        # The line may give the value for a column of the association's scope.
        unlike = (scoped - asked).size + (!named && scoped.any? { |column| Source.at(group.busiest).value(column) } ? 1 : 0)
        [named ? 0 : 1, unlike, -scoped.size, link.through ? 1 : 0, link.to == :many ? 0 : 1]
      end

      # If other values change but the owner stays the same, the query does not repeat per owner.
      def asked_anew?(link, group) = group.pieces.nil? || group.different == 1 || group.pieces.varies?(link.keys)

      def candidates
        @candidates ||= [*loaded, *walked_to].uniq.flat_map { |model| Detect.models(model).links(model) }
      end

      def loaded = @loads.map(&:model).uniq.filter_map { |name| Detect.model(name) }

      # A polymorphic association has no target class, but its statement names the table.
      def walked_to
        @groups.flat_map { |group| (link = witnessed(group)) ? [link.target || group.shape.models].flatten : [] }
      end
    end
  end
end
