# frozen_string_literal: true

module Castellan
  module Detect
    # Finds the association that a group's statements belong to: the observed one, or, for statements outside
    # of it (`user.posts.count`), one with matching table and key.
    #
    #   links = Links.new(tally)
    #   links.walk?(group)   # => true if the group's association was loaded as declared
    #   links.of(group)      # => a {ModelAssociation}, or nil
    #
    # Considers only models that were part of the work: loaded, or reached by an association. Of
    # several candidates it prefers the one that the source line names, then the one whose scope covers the
    # queried columns. {#rivals} returns the other equally good candidates.
    class Links
      def initialize(tally)
        @groups = tally.groups
        @loads = tally.loads
        @scoped = {}.compare_by_identity
        @preloads = {}
        @tables = {}
      end

      # Whether the group is the observed association's own query, as opposed to a query of a callback or of a
      # nested preload.
      def walk?(group)
        link = witnessed(group)
        link ? link.target.nil? || group.shape.tables.intersect?([link.table, link.through]) : false
      end

      # @return [ModelAssociation, nil] the group's association
      def of(group)
        return (witnessed(group) if walk?(group)) if group.association

        fitting(group).min_by { |link| rank(link, group) }
      end

      # @param link [ModelAssociation] the group's association
      # @return [Array<ModelAssociation>] others of the model that fit as well; empty for an observed one
      def rivals(group, link)
        return [] if group.association || link.nil?

        fitting(group).select { |other| other != link && other.model == link.model && rank(other, group) == rank(link, group) }
      end

      # Whether the group may preload an association of the records that `other` read.
      def preloads?(other, group)
        library = group.shape.library
        key = [library, other.shape.table, group.shape.table]
        @preloads.fetch(key) do
          @preloads[key] = library.of_table(other.shape.table).any? { |model| leads_to?(library, model, group.shape.table) }
        end
      end

      private

      def leads_to?(library, model, table)
        tables = @tables[model] ||= library.polymorphic(model).any? ? [nil] : library.links(model).flat_map(&:tables)
        tables.include?(table) || tables.include?(nil)
      end

      def witnessed(group) = group.association && Detect.models(group.owner)&.link(group.owner, group.association)

      def fitting(group) = candidates.select { |link| link.asked_by?(group.shape) && asked_anew?(link, group) }

      def rank(link, group)
        scoped = @scoped[link] ||= Selection.columns(link)
        source = Source.at(group.busiest)
        named = source.names?(link.name, :"#{link.name}_dataset")
        # The line itself may give a value for a column of the association's scope.
        unlike = (scoped - group.shape.equal).any? || (!named && scoped.any? { |column| source.value(column) })
        [named ? 0 : 1, unlike ? 1 : 0, -scoped.size, link.through ? 1 : 0, link.to == :many ? 0 : 1]
      end

      # If the owner stays the same while other values change, the owner is not what repeats.
      def asked_anew?(link, group) = group.pieces.nil? || group.different == 1 || group.pieces.varies?(link.keys)

      def candidates
        @candidates ||= [*loaded, *walked_to].uniq.flat_map { |model| Detect.models(model).links(model) }
      end

      def loaded = @loads.map(&:model).uniq.filter_map { |name| Detect.model(name) }

      # The statement of a polymorphic association names the table of its target.
      def walked_to
        @groups.flat_map { |group| (link = witnessed(group)) ? [link.target || group.shape.models].flatten : [] }
      end
    end
  end
end
