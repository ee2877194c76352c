# frozen_string_literal: true

module Castellan
  module Detect
    # Finds the line that loaded the records that repeat a query, and their path to the association.
    #
    #   parent = Parents.new(tally).of(Comment, group)
    #   parent.site    # the line that loaded the posts
    #   parent.model   # => Post
    #   parent.path    # => [:comments], the associations from a post to the owner
    #   parent.count   # => 20
    #   parent.loaded  # => Post or a superclass: the class that the line loads
    #   parent.walk    # => :posts, if the association of one record loaded them
    #   parent.also    # => more sites that loaded such records, if the first loaded too few
    #   parent.join    # => true if a JOIN of the line loaded the associations of the path
    #   parent.streamed  # => true if the line reads the records one by one, with Sequel's `each`
    #
    # The path may consist of preloads, joins, and queries for one owner at a time.
    class Parents
      Parent = Struct.new(:model, :site, :count, :path, :loaded, :also, :walk, :join, :streamed, keyword_init: true)
      # Records that a line loads: `path` leads from the class of the `preload` to `model`, and `names` are
      # the associations of `model` that are preloaded, too.
      Node = Struct.new(:preload, :model, :path, :names) do
        def order = preload.order
      end
      DEEPEST = 4
      private_constant :Node, :DEEPEST

      def initialize(tally)
        @loads = tally.loads
        @groups = tally.groups
        @preloads = tally.preloads.group_by(&:site)
        @nodes = {}
      end

      # @param owner [Class] the model that declares the association
      # @param name [Symbol] the association
      # @return [Parent, nil] nil if no load of several owners was observed
      def of(owner, group, name = group.association, depth: 0)
        return if depth > DEEPEST

        load, node = load_before(owner, group, name)
        return through_group(owner, group, name, depth) || joined(owner, group) || streamed(owner, group) if load.nil?
        return preloaded(node) if node&.path&.any?

        through_group(owner, group, name, depth, load) || here(load, owner, group)
      end

      private

      # Prefers a load that did not preload the association, then one before the first read, then one of
      # exactly as many records as read it, then the last unrepeated load with enough records, then the
      # largest.
      def load_before(owner, group, name)
        found = @loads.select { |load| fits?(load.model, owner) }.flat_map do |load|
          nodes = nodes(load, owner)
          nodes << nil if nodes.empty? || nodes.sum { |node| node.preload.times } < load.times
          nodes.map { |node| [load, node] }
        end
        found.max_by { |load, node| [*rank(load, node, group, name), -(node ? node.path.size : 0)] }
      end

      def rank(load, node, group, name)
        enough = load.times == 1 && (load.joined || load.count >= walkers(group))
        [node&.names.to_a.include?(name) ? 0 : 1, (node || load).order < group.order ? 1 : 0, load.count == walkers(group) ? 1 : 0,
         enough ? 1 : 0, read_below?(node, group, name) ? 1 : 0, enough ? load.order : load.count, load.order]
      end

      # Whether the line calls the association on preloaded records: `comment.parent.author`.
      def read_below?(node, group, name) = node && node.path.any? && Source.at(group.busiest).reads_below?(name, node.path.last)

      # The number of records that read the association.
      def walkers(group) = group.count + group.cached

      def nodes(load, owner)
        nodes_at(load.site).select { |node| fits?(node.model.name, owner) && fits?(load.model, node.model) }
      end

      def nodes_at(site)
        @nodes[site] ||= @preloads.fetch(site, []).reject(&:nested).flat_map do |one|
          below(one, one.model, [], Preload.tree(one.associations))
        end
      end

      # The scope of a preloaded association may preload other associations.
      def below(one, model, path, tree)
        nested = @preloads[one.site].select { |other| other.nested && fits?(other.model.name, model) }
        tree = Preload.merge(tree, *nested.map { |other| Preload.tree(other.associations) })
        further = path.size > DEEPEST ? [] : tree.keys.flat_map { |name| steps(one, model, name, tree) }
        [Node.new(one, model, path, tree.keys),
         *further.flat_map { |name, target, rest| below(one, target, [*path, name], rest) }]
      end

      # A through association loads the records in between as well, perhaps by a statement of its own.
      def steps(one, model, name, tree)
        library = Detect.models(model)
        link = library.link(model, name) or return []
        return (models_at(one.site) - [model]).map { |target| [name, target, tree[name]] } unless link.target

        between = library.between(link) if library == ActiveRecordModels
        [between, link].compact.map { |step| [step.name, step.target, tree.fetch(step.name, {})] }
      end

      def models_at(site) = @loads.select { |load| load.site == site }.filter_map { |load| Detect.model(load.model) }

      def preloaded(node)
        preload = node.preload
        root = @loads.find { |other| other.site == preload.site && fits?(other.model, preload.model) } unless preload.join
        Parent.new(model: preload.model, site: preload.site, count: root&.count, path: node.path, join: preload.join)
      end

      def fits?(name, owner)
        model = name == owner.name ? owner : Detect.model(name)
        model ? model <= owner || owner <= model || false : false
      end

      def here(load, owner, group)
        site, *also = [load, *others(load, owner, group)].sort_by(&:order).map(&:site).uniq
        Parent.new(model: owner, site: site, count: load.joined ? group.count : load.count, path: [], loaded: Detect.model(load.model),
                   also: also, walk: walk_to(owner, load))
      end

      # The association that loaded these records at the line, if any; its statement comes before them.
      def walk_to(owner, load)
        here = walks.select { |group, link| link.to == :many && group.order < load.order && group.sites.key?(load.site) }
        here.find { |group, link| leads_to?(link, group, owner) }&.first&.association
      end

      def walks
        @walks ||= @groups.filter_map do |group|
          link = group.association && Detect.models(group.owner)&.link(group.owner, group.association)
          [group, link] if link
        end
      end

      # If more records read the association than this load returned, the next largest loads returned the
      # others.
      def others(load, owner, group)
        missing = group.association && !load.joined ? walkers(group) - load.count : 0
        candidates = @loads.select { |other| other != load && other.count > 1 && fits?(other.model, owner) }
        candidates = candidates.sort_by { |other| [other.order < group.order ? 0 : 1, -other.count] }
        candidates.take_while { |other| missing.positive? && (missing -= other.count) }
      end

      # If a repeated association, whose statements began earlier, loaded the owners, continues with its parent.
      # @param load [Load, nil] of the owners; if it is one statement, the line must name the association
      def through_group(owner, group, name, depth, load = nil)
        walk, link = walk_above(owner, group, name, load)
        parent = walk && of(walk.owner, walk, depth: depth + 1) or return

        parent.dup.tap { |further| further.path = [*parent.path, link.name] }
      end

      # Prefers the association that the line names: `comment.parent.author`. Only this can be one of the same model.
      # Otherwise prefers the one that loaded the owners where the load was seen: `post.comments` on another line than
      # `post.last_comment`.
      def walk_above(owner, group, name, load)
        found = walks.select do |other, link|
          !other.equal?(group) && !group.before?(other) && other.count > 1 && leads_to?(link, other, owner)
        end
        nearest = Source.at(group.busiest).nearest_above(name, found.map { |other, _link| other.association })
        named = found.find { |other, _link| other.association == nearest }
        return named if named || load&.times == 1

        others = found.reject { |other, _link| other.owner.equal?(owner) }
        others.find { |other, _link| load && other.sites.key?(load.site) } || others.first
      end

      # A polymorphic association has no target class, but its queries name the table.
      def leads_to?(link, walk, owner)
        return fits?(link.target.name, owner) if link.target

        Detect.models(owner)&.of_table(walk.shape.table).to_a.any? { |model| fits?(model.name, owner) }
      end

      # The load of a JOIN is known for the first model only.
      def joined(owner, group)
        nodes = @preloads.keys.flat_map { |site| nodes_at(site) }.select { |node| node.path.any? && fits?(node.model.name, owner) }
        node = nodes.find { |one| one.order < group.order }
        preloaded(node) if node
      end

      # Sequel's `each` yields records one by one and reports no load, so this searches for the statement.
      def streamed(owner, group)
        return unless Detect.models(owner) == SequelModels

        statement = @groups.find { |other| other.before?(group) && other.association.nil? && reads_several?(other, owner) }
        Parent.new(model: owner, site: statement.sites.keys.first, count: nil, path: [], streamed: true) if statement
      end

      def reads_several?(group, owner)
        shape = group.shape
        (!shape.single? || shape.paged? || group.several?) && shape.records? && SequelModels.of_table(shape.table).include?(owner)
      end
    end
  end
end
