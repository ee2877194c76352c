# frozen_string_literal: true

module Castellan
  module Detect
    # Decides which of the counted statements are findings. Single slow statements come last ({Singles}).
    #
    #   Verdict.new(tally, repeats: 2, min_ns: 0).findings   # => [Finding]
    #
    # A group is a finding if one line sent at least `repeats` of its statements in at least `min_ns`; the
    # queries of one association, one per loaded record, may come from several lines. Batch reads, polling,
    # and different lines that send the same statement are not findings. Reads source files and models, so
    # call it after the measured work.
    class Verdict
      Case = Struct.new(:kind, :group, :site, :link, :parent, :models, :rivals, keyword_init: true) do
        # The statements that the finding counts: the group's own, or those that the query cache answered.
        def counted = kind == :cached_repeat ? group.answers : group
        def count = counted.count

        # The columns, besides the association's keys, that the queries of the line compare with different values. If the
        # line has one query, other lines sent the other values.
        def mixed
          group.pieces && link && several? ? (group.pieces.varying & group.shape.equal) - [*link.keys, link.type] : []
        end

        private

        def several?
          names = [link.name, :"#{link.name}_dataset"]
          Source.at(site).calls.count { |call|
            call.line == CallSite.line(site) && (names.include?(call.name) || target?(call.receiver))
          } > 1
        end

        def target?(node) = node&.kind == :constant && node.text[/\w+\z/] == link.target.to_s[/\w+\z/]
      end

      def initialize(tally, repeats: 2, min_ns: 0)
        @tally = tally
        @repeats = repeats
        @min_ns = min_ns
      end

      # @return [Array<Finding>] repetitions by descending count, then single statements
      def findings = repetitions + @tally.single_findings

      # @return [Array<Finding>] by descending count
      def repetitions
        @parents = Parents.new(@tally)
        @links = Links.new(@tally)
        @batches = BatchReads.new(@tally, @links)
        cases = loops(first_pages(groups.select { |group| enough?(group) }.filter_map { |group| judge(group) }))
        cases += cached_repeats(cases.map(&:group))
        fixes = Fixes.new(cases)
        cases.sort_by { |one| [-one.count, one.group.order] }.map { |one| finding(one, fixes.of(one)) }
      end

      private

      def enough?(counted) = counted && counted.count >= @repeats && counted.span_ns >= @min_ns

      # Merges groups that belong together: all tables of one association (polymorphic or through), and the
      # INSERTs of one line with different columns. Reading an association's records and reading only its ids
      # stay separate.
      def groups
        @groups ||= begin
          alike = @tally.groups.group_by { |group| likeness(group) }.values
          alike.map { |same| same.sort_by { |group| -group.count }.reduce(:merge) }.sort_by(&:order)
        end
      end

      def likeness(group)
        shape = group.shape
        if @links.walk?(group) then [group.owner, group.association, ways(group).index(group)]
        elsif shape.write? && group.count < @repeats
          [shape.verb, shape.table, group.busiest, (shape.tables if shape.copies?), shape.database]
        else
          text = group.count < @repeats ? [shape.fingerprint, shape.database] : shape.fingerprint # one finding for all databases
          [text, group.owner, group.association]
        end
      end

      def ways(group)
        @tally.groups.select do |other|
          other.association == group.association && other.owner.equal?(group.owner) && other.shape.table == group.shape.table
        end
      end

      def judge(group)
        return write_loop(group) if group.shape.write?
        return if @batches.piece?(group)

        link = @links.of(group)
        link ? judge_walk(group, link) : judge_statement(group)
      end

      # Statements that the query cache answered repeatedly at one line, except those of another case.
      def cached_repeats(known)
        groups.reject { |group| known.include?(group) }.filter_map do |group|
          next unless enough?(group.answers)

          link = @links.of(group) if @links.walk?(group)
          site = busiest_site(group.answers, group.shape, link) or next
          new_case(:cached_repeat, group, site, link: link, parent: link && @parents.of(link.model, group, link.name))
        end
      end

      def write_loop(group)
        site = busiest_site(group, group.shape)
        new_case(:write_loop, group, site) unless site.nil? || some_at_a_time?(group) || attempted_again?(group)
      end

      # Whether the statement writes a batch at a time until no row is left, rather than the rows of one owner
      # at a time.
      def some_at_a_time?(group) = group.shape.limited? && !varies?(group, group.shape.equal)

      # Whether it writes one row again, compared with other values, e.g. after a conflict of optimistic
      # locking.
      def attempted_again?(group) = group.shape.equal.include?("id") && group.pieces&.varying.to_a.any? && !varies?(group, ["id"])

      # Without pieces, the statements may write different rows.
      def varies?(group, columns) = group.pieces.nil? || group.pieces.varies?(columns)

      def judge_walk(group, link)
        parent = @parents.of(link.model, group, link.name)
        all = parent&.count && group.count >= parent.count
        site = busiest_site(group, group.shape, link) || (group.busiest if all)
        one_owner = group.different == 1 && (parent.nil? || (link.foreign && !all))
        return judge_statement(group, link) if site.nil? || one_owner

        new_case(:n_plus_one, group, site, link: link, parent: parent, rivals: @links.rivals(group, link))
      end

      def judge_statement(group, link = nil)
        site = busiest_site(group, group.shape, link)
        return if site && group.polling?
        return new_case(:n_plus_one, group, site) if site && group.different > 1 && !of_subclasses?(group)
        return if group.shape.volatile? || @batches.first?(group) || Source.at(group.busiest).locks?

        # Between two lines, a trigger or cascade may have changed the result, so only unchanged repeats
        # count.
        again = site ? group.again : group.unchanged_repeats
        new_case(:duplicate, group, group.busiest) if again >= @repeats - 1
      end

      # Subclasses that share a table are separate models: `[Dog, Cat].map(&:count)` is one query for each.
      def of_subclasses?(group)
        shape = group.shape
        column = shape.library.kind_column(shape)
        column && (shape.only_by?(column) || (group.pieces&.varying == [column] && !shape.compares?))
      end

      # The second page of each record belongs to the finding of the first page.
      def first_pages(cases)
        cases.reject do |one|
          one.link && one.group.shape.paged? && cases.any? do |other|
            other.link == one.link && other.site == one.site && other.group.before?(one.group)
          end
        end
      end

      # A save may also write counters, touched owners and join rows, and run uniqueness queries. They belong
      # to one write loop: the largest at the line, among equals the one whose model the line names, then the
      # first.
      def loops(cases)
        writes = cases.select { |one| one.kind == :write_loop }
        leads = writes.group_by(&:site).transform_values do |same|
          same.min_by { |one| [-one.count, mentions(one.site, one.group.shape).positive? ? 0 : 1, one.group.order] }
        end
        cases.select { |one| one.kind == :write_loop ? leads[one.site].equal?(one) : writes.none? { |write| part_of?(one, write) } }
      end

      # The query of a Sequel validation has its own line, in the model. The lookup of a new record's owner
      # only checks that the owner exists.
      def part_of?(one, write)
        group = one.group
        return false if one.count > write.count
        return one.site == write.site && one.parent.nil? && owner?(one, write) if @links.walk?(group)
        return false unless write.group.shape.table == group.shape.table
        return group.shape.existence? && CallSite.source(one.site).to_s.include?("validates_unique") if one.site != write.site

        group.shape.existence? || group.shape.locks? || Source.at(one.site).locks? || write.group.before?(group)
      end

      # A duplicate has no link: the new records have one owner, which each of them reads again.
      def owner?(one, write)
        (one.link || @links.of(one.group))&.model == write.group.shape.models.first
      end

      def new_case(kind, group, site, link: nil, **more)
        Case.new(kind: kind, group: group, site: site, link: link, models: Detect.models(link&.model), rivals: [], **more)
      end

      MOST_WRITTEN = 4
      AGAIN = %i[lock! with_lock].freeze
      LIBRARY = %w[ActiveRecord::Base Sequel::Model Object].freeze
      private_constant :MOST_WRITTEN, :AGAIN, :LIBRARY

      # @return [Integer, nil] the line that sent enough statements by itself, and more than it has calls
      def busiest_site(counted, shape, link = nil)
        site, count = counted.sites.max_by { |_site, number| number }
        site if count && count >= @repeats && (count > MOST_WRITTEN || count > mentions(site, shape, link))
      end

      # The number of calls for the model or association at the line: `[User.find(1), User.find(2)]` is not a
      # loop.
      def mentions(site, shape, link = nil)
        source = site ? Source.at(site) : (return 0)
        times = named(source, CallSite.source(site).to_s, shape, link).map { |words| words.tally.values.max.to_i }.max.to_i
        times.positive? && link.nil? ? times + source.calls.count { |call| AGAIN.include?(call.name) } : times
      end

      def named(source, text, shape, link)
        return [source.calls.filter_map { |call| call.name if call.name == link.name && call.receiver }] if link
        return [] if shape.table.nil?

        [text.scan(/(?:\[:|\b(?:from|join|into|update) )#{Regexp.escape(shape.table)}\b/i),
         *shape.models.map { |model| calls(source, model) }]
      end

      # The model's own scopes count as one name: `[Ticket.open.count, Ticket.closed.count]` is not a loop.
      # Alternatives count separately, because not all of them run:
      # `Ticket.open.first || Ticket.closed.first`.
      def calls(source, model)
        name = model.name[/\w+\z/]
        calls = source.calls.select { |call| call.receiver&.kind == :constant && call.receiver.text[/\w+\z/] == name }.map(&:name)
        return calls if source.alternatives?

        calls.map { |call| model.respond_to?(call) && own?(model, call) ? :scope : call }
      end

      # Whether the model itself, not the ORM, defines this scope or class method.
      def own?(model, name)
        library = model.ancestors.find { |owner| LIBRARY.include?(owner.name) }
        !library.singleton_class.ancestors.include?(model.method(name).owner)
      end

      def finding(one, fix)
        Finding.new(kind: one.kind, count: one.count, cached_count: one.group.cached, fingerprint: one.group.shape.fingerprint,
                    location: CallSite.location(one.site), association: one.link&.to_s, total_ns: one.counted.total_ns,
                    objects: one.counted.objects,
                    parent_location: CallSite.location(one.parent&.site), parent_count: one.parent&.count,
                    parent_model: one.parent&.model&.name, preload: fix.preload, declaration: fix.declaration, also: fix.also,
                    fix: fix.text, fix_refused: fix.refused,
                    source: one.site && CallSite.source(one.site), stack: one.counted.stack&.map { |site| CallSite.frame(site) }&.freeze)
      end
    end
  end
end
