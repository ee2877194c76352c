# frozen_string_literal: true

module Castellan
  module Detect
    # Finds where the records were loaded among which a query repeats, and the way from there to the association.
    #
    #   parent = Parents.new(tally).of(Comment, group)
    #   parent.site    # where the posts were loaded
    #   parent.model   # => Post
    #   parent.path    # => [:comments], what must be walked from a post to reach the owner
    #   parent.count   # => 20
    #   parent.loaded  # => Post, or a superclass of it: what the line loads
    #   parent.walk    # => :posts, when they were loaded through that association of one record
    #   parent.also    # => other sites where such records were loaded, when these were too few
    #
    # Records that were themselves fetched one owner at a time are followed to the first load, so that nested repetition
    # is repaired at its root. A load is taken for the parent when its model fits and it came before.
    class Parents
      # One answer.
      Parent = Struct.new(:model, :site, :count, :path, :loaded, :also, :walk, keyword_init: true)
      DEEPEST = 4

      def initialize(tally)
        @loads = tally.loads
        @groups = tally.groups
      end

      # @param owner [Class] the model that declares the association
      # @param group [Group]
      # @return [Parent, nil] nil where no set of siblings is known
      def of(owner, group, depth = 0)
        return if depth > DEEPEST

        load = load_before(owner, group)
        return through_group(owner, group, depth) || joined(owner, group) || streamed(owner, group) if load.nil?

        load.times > 1 ? through_group(owner, group, depth) || here(load, owner, group) : from_root(load, owner, group)
      end

      # @param link [Object] an association of the parent's, see {Links}
      # @return [Boolean] whether the line that loads the parents loads all of that, too
      def loaded_with?(parent, link)
        link.through.nil? && @groups.any? do |other|
          other.association.nil? && other.sites.key?(parent.site) && other.shape.table == link.table && other.shape.listed? &&
            other.shape.only_by?(link.key)
        end
      end

      private

      def load_before(owner, group)
        fitting = @loads.select { |load| fits?(load.model, owner) }
        before = fitting.select { |load| load.order < group.order }
        (before.any? ? before : fitting).max_by { |load| [preloaded?(load, group) ? 0 : 1, walked?(load, group) ? 1 : 0, load.count] }
      end

      # Whether what is asked for was loaded where these records were: then others ask.
      def preloaded?(load, group)
        @groups.any? do |other|
          other.association.nil? && other.shape.table == group.shape.table && other.shape.listed? && other.sites.key?(load.site)
        end
      end

      # Whether each of them asked once.
      def walked?(load, group) = load.count == group.count + group.cached

      def fits?(name, owner)
        return true if name == owner.name

        model = Object.const_get(name)
        model <= owner || owner <= model || false
      rescue NameError
        false
      end

      def here(load, owner, group)
        own = own_walk(load, owner, group)
        return Parent.new(model: owner, site: load.site, count: nil, path: [own.name], loaded: class_named(load.model)) if own

        count = load.joined ? group.count : load.count
        Parent.new(model: owner, site: load.site, count: count, path: [], loaded: class_named(load.model),
                   also: others(load, owner, group), walk: walk_to(owner, load))
      end

      # The association by which a model belongs to itself, when it was preloaded with these records and the line goes on from there:
      # `comment.parent.author`.
      def own_walk(load, owner, group)
        return unless load.times > 1 && !load.joined && Detect.models(owner)

        source = WrittenCall.at(group.busiest)
        Detect.models(owner).links(owner).find do |link|
          link.target && fits?(link.target.name, owner) && goes_on?(source, link.name, group.association) && preloaded_there?(load, link)
        end
      end

      # `comment.parent.author`, or `comment.children.each { |child| child.author }`.
      def goes_on?(source, name, association)
        return false unless association

        own, other = [name, association].map { |one| Regexp.escape(one.to_s) }
        source.match?(/(?<=\.)#{own}(?:&?\.#{other}\b|\b[^|]*(?:\{|\bdo)\s*\|(\w+)\|.*\b\1&?\.#{other}\b)/)
      end

      def preloaded_there?(load, link)
        @groups.any? do |other|
          other.association.nil? && other.sites.key?(load.site) && other.shape.table == link.table && other.shape.only_by?(link.key)
        end
      end

      # The association through which a line loads such records, if it is one: its statement came before they did.
      def walk_to(owner, load)
        walks = @groups.select { |group| group.association && group.order < load.order && group.sites.key?(load.site) }
        walks.find do |group|
          link = Detect.models(group.owner)&.link(group.owner, group.association)
          link&.to == :many && leads_to?(link, group, owner)
        end&.association
      end

      def class_named(name)
        Object.const_get(name)
      rescue NameError
        nil
      end

      # Each record walks once. Where more walked than this load brought, some came from the next largest ones,
      # or from those that were loaded when the first had walked already.
      def others(load, owner, group)
        missing = group.association && !load.joined ? group.count + group.cached - load.count : 0
        candidates = @loads.select { |other| other != load && other.count > 1 && fits?(other.model, owner) }
        candidates = candidates.sort_by { |other| [other.order < group.order ? 0 : 1, -other.count] }
        candidates.take_while { |other| missing.positive? && (missing -= other.count) }.map(&:site).uniq
      end

      # Records that came in one statement but after another load at the same place were most likely preloaded from there.
      def from_root(load, owner, group)
        return here(load, owner, group) if load.root == load.model || apart?(load)

        root = @loads.find { |other| other.site == load.site && other.model == load.root }
        names = path_between(Object.const_get(root.model), owner)
        return here(load, owner, group) unless names

        Parent.new(model: Object.const_get(root.model), site: root.site, count: root.count, path: names)
      rescue NameError
        here(load, owner, group)
      end

      # Whether two subclasses of one table were each asked for, and none was preloaded for the other.
      def apart?(load)
        models = [load.root, load.model].map { |name| class_named(name) }
        table, other = models.map { |model| model.table_name if model && Detect.models(model) }
        return false unless table && table == other

        @groups.none? { |group| group.sites.key?(load.site) && group.shape.listed? && group.shape.table == table.to_s }
      end

      # The owners came from a repeated walk themselves: ask for the parent of that.
      def through_group(owner, group, depth)
        walk, link = repeated_walk(owner, group)
        parent = walk && of(walk.owner, walk, depth + 1) or return

        parent.dup.tap { |further| further.path = [*parent.path, link.name] }
      end

      def repeated_walk(owner, group)
        @groups.each do |other|
          next if other.equal?(group) || other.association.nil? || other.count < 2

          link = Detect.models(other.owner)&.link(other.owner, other.association)
          return [other, link] if link && leads_to?(link, other, owner) && !other.owner.equal?(owner)
        end
        nil
      end

      # Where a polymorphic association leads says the table that was asked.
      def leads_to?(link, walk, owner)
        return fits?(link.target.name, owner) if link.target

        Detect.models(owner)&.of_table(walk.shape.table).to_a.any? { |model| fits?(model.name, owner) }
      end

      # What comes by a JOIN is told as loads of the first model only: the statement names the other tables.
      def joined(owner, group)
        joins = @groups.select { |other| other.before?(group) && other.shape.tables.size > 1 && !other.shape.write? }
        joins.each do |other|
          load = @loads.find { |one| other.sites.key?(one.site) } or next
          root = Object.const_get(load.model)
          names = path_between(root, owner, other.shape.tables) or next
          return Parent.new(model: root, site: load.site, count: nil, path: names)
        end
        nil
      rescue NameError
        nil
      end

      # Records that were taken one by one from a statement (Sequel's `each`) are never told as loaded: the statement is known.
      def streamed(owner, group)
        models = Detect.models(owner)
        return unless models == SequelModels

        statement = @groups.find { |other| other.before?(group) && other.association.nil? && reads_all?(other.shape, models, owner) }
        Parent.new(model: owner, site: statement.sites.keys.first, count: nil, path: []) if statement
      end

      def reads_all?(shape, models, owner)
        several = !shape.single? || shape.paged?
        several && !shape.write? && !shape.calculation? && !shape.existence? && models.of_table(shape.table).include?(owner)
      end

      # Breadth first over the associations that lead to models loaded in this recording, or to tables that were joined; those
      # that go through another only where nothing else leads there, because what is on the way is loaded as well; a polymorphic
      # one at last.
      def path_between(root, owner, joined = nil)
        models = Detect.models(root) or return
        search(models, root, owner, false, joined) || search(models, root, owner, true, joined) || (anywhere(models, root) unless joined)
      end

      def anywhere(models, root)
        names = models.polymorphic(root)
        names if names.size == 1
      end

      def search(models, root, owner, through, joined)
        paths = [[root, []]]
        seen = [root]
        while (model, names = paths.shift)
          links_to_loaded(models, model, through, joined).each do |link|
            return [*names, link.name] if fits?(link.target.name, owner)
            next if seen.include?(link.target) || names.size >= DEEPEST

            seen << link.target
            paths << [link.target, [*names, link.name]]
          end
        end
        nil
      end

      def links_to_loaded(models, model, through, joined)
        models.links(model).select do |link|
          (through || link.through.nil?) && link.target &&
            (joined ? joined.include?(link.table) : @loads.any? { |load| fits?(load.model, link.target) })
        end
      end
    end
  end
end
