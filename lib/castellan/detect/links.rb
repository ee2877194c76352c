# frozen_string_literal: true

module Castellan
  module Detect
    # Through which association the statements of a group were asked for: the one that was witnessed, or the one that a
    # statement outside of it (`user.posts.count`) must have come through, by its table and key.
    #
    #   links = Links.new(tally)
    #   links.walk?(group)   # => true where an association was loaded as it is declared
    #   links.of(group)      # => a {Link}, or nil
    #
    # Derived only from models that took part in the work: those that were loaded, walked to, or looked up. Where two fit,
    # the one is taken that the source line names, then the one whose scope has the columns that were asked for; {#rivals} are those that
    # fit as well.
    class Links
      WHOLE_ROWS = /\Aselect (?:\w+\.)?\* from /
      private_constant :WHOLE_ROWS

      def initialize(tally)
        @groups = tally.groups
        @loads = tally.loads
      end

      # @return [Boolean] whether it is the statement of the association that was walked, and not one that was sent meanwhile
      #   (by a callback, or for what the association preloads)
      def walk?(group)
        link = witnessed(group)
        link ? link.target.nil? || group.shape.tables.intersect?([link.table, link.through]) : false
      end

      # @return [Link, nil]
      def of(group)
        return (witnessed(group) if walk?(group)) if group.association

        fitting(group).min_by { |link| rank(link, group) }
      end

      # @param link [Link] the one of this group
      # @return [Array<Link>] others of the same model that it may have come through; none where the association was witnessed
      def rivals(group, link)
        return [] if group.association || link.nil?

        fitting(group).select { |other| other != link && other.model == link.model && rank(other, group) == rank(link, group) }
      end

      # @return [Link, nil] the association that a look-up stands for, by a key that the line takes from a record: `Tag.find(post.tag_id)`
      def held(group)
        return if group.association || group.busiest.nil?

        source = Source.at(group.busiest)
        candidates.find { |link| link.held_by?(group.shape, source) }
      end

      # @return [Boolean] whether a model that took part has an association to this table, whose lists overlap when it is preloaded
      #   for one batch after the other
      def led_to?(group) = models.any? { |model| leads_to?(Detect.models(model), model, group.shape.table) }

      # @return [Boolean] whether records may have been asked for to preload an association of what another group read
      def preloads?(other, group)
        library = group.shape.library
        key = [library, other.shape.table, group.shape.table]
        (@preloads ||= {}).fetch(key) do
          @preloads[key] = models_of(library, other.shape.table).any? { |model| leads_to?(library, model, group.shape.table) }
        end
      end

      private

      # All models are looked at to find them.
      def models_of(library, table) = (@models_of ||= {})[[library, table]] ||= library.of_table(table)

      def leads_to?(library, model, table)
        tables = (@led_to ||= {})[model] ||= library.led_to(model)
        tables.include?(table) || tables.include?(nil)
      end

      def witnessed(group) = group.association && Detect.models(group.owner)&.link(group.owner, group.association)

      def fitting(group)
        candidates.select { |link| link.asked_by?(group.shape) && asked_anew?(link, group) && kin?(link, group.shape) }
      end

      # Of one table another subclass may be asked for than an association leads to.
      def kin?(link, shape)
        model = shape.model && Object.const_get(shape.model)
        return true unless Detect.models(model) && link.target

        model <= link.target || link.target <= model || model.table_name != link.target.table_name
      rescue NameError
        true
      end

      def rank(link, group)
        scoped = (@scoped ||= {}.compare_by_identity)[link] ||= Selection.columns(link)
        named = named?(link, group)
        [named ? 0 : 1, (scoped - group.shape.equal).any? || (!named && written?(scoped, group)) ? 1 : 0, -scoped.size,
         link.through ? 1 : 0, link.to == :many ? 0 : 1]
      end

      # Whether the line itself gives a value to what the scope of an association would choose by.
      def written?(columns, group)
        source = Source.at(group.busiest)
        columns.any? { |column| source.value(column) }
      end

      def candidates
        @candidates ||= models.flat_map { |model| Detect.models(model).links(model) }
      end

      # An owner that is the same each time, while something else changes, is not what repeats.
      def asked_anew?(link, group) = group.pieces.nil? || group.different == 1 || group.pieces.varies?(link.keys)

      def named?(link, group)
        Source.at(group.busiest).names?(link.name, :"#{link.name}_dataset")
      end

      def models = [*loaded, *walked_to, *looked_up, *streamed].uniq

      def loaded
        @loads.map(&:model).uniq.filter_map do |name|
          model = Object.const_get(name)
          model if Detect.models(model)
        rescue NameError
          nil
        end
      end

      def walked_to = @groups.filter_map { |group| witnessed(group)&.target }

      # Records that come one by one (Sequel's `each`) are not told as loaded: what the line names that asks for several is one of them.
      # Rows without a model name none.
      def streamed
        reads = @groups.select { |group| group.shape.sequel? && group.association.nil? && several?(group.shape) }
        reads.filter_map { |group| Words.written(group.shape.models, Source.at(group.busiest).constants) }
      end

      def several?(shape) = !shape.single? && shape.fingerprint.match?(WHOLE_ROWS)

      # Records that were fetched one by one, by their key.
      def looked_up
        @groups.select { |group| group.count > 1 && !group.shape.write? && group.shape.equal.size == 1 }.filter_map do |group|
          group.shape.models.find { |model| group.shape.library.primary_key(model) == group.shape.equal.first }
        end
      end
    end
  end
end
