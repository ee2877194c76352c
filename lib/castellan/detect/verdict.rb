# frozen_string_literal: true

module Castellan
  module Detect
    # Decides which of the statements that were counted are findings. Repetition alone is none: batches, polling and
    # different lines that happen to ask alike are left out.
    #
    #   Verdict.new(tally, repeats: 2, min_ns: 0).findings   # => [Finding]
    #
    # A group is a finding when it has at least `repeats` statements from one line (or, through one association of
    # records that were loaded together, from any lines) and when `min_ns` have passed from its first to its last.
    # Reads source files and models, so it belongs after the work and not into it.
    class Verdict
      # A group that will be reported, with what was found out about it and the groups that are the same finding.
      Case = Struct.new(:kind, :group, :site, :link, :parent, :models, :groups, keyword_init: true) do
        def count = groups.sum(&:count)
        def cached = groups.sum(&:cached)
        def total_ns = groups.sum(&:total_ns)
      end

      def initialize(tally, repeats: 2, min_ns: 0)
        @tally = tally
        @repeats = repeats
        @min_ns = min_ns
        @parents = Parents.new(tally)
      end

      # @return [Array<Finding>] the most statements first
      def findings
        cases = merge(suspects.filter_map { |group| judge(group) })
        fix = Fix.new(cases)
        cases.sort_by { |one| [-one.count, one.group.order] }.map { |one| finding(one, fix) }
      end

      private

      def suspects
        @tally.groups.select { |group| group.count >= @repeats && group.span_ns >= @min_ns }
      end

      # A polymorphic association asks several tables and is one finding.
      def merge(cases)
        cases.group_by { |one| one.link && one.group.association ? [one.link, one.parent&.site] : one }.values.map do |same|
          first = same.max_by { |one| one.group.count }
          first.groups = same.map(&:group)
          first
        end
      end

      def judge(group)
        return write_loop(group) if group.shape.write?

        link = link_of(group)
        link ? judge_walk(group, link) : judge_statement(group)
      end

      def write_loop(group)
        site = crowded(group) and new_case(:write_loop, group, site)
      end

      def judge_walk(group, link)
        parent = @parents.of(link.model, group)
        site = parent ? busiest(group) : crowded(group)
        return judge_statement(group) if site.nil? || (parent.nil? && group.different == 1)

        new_case(:n_plus_one, group, site, link: link, parent: parent)
      end

      def judge_statement(group)
        return if group.shape.batch? || group.polling?

        site = crowded(group)
        return new_case(:n_plus_one, group, site) if site && group.different > 1

        new_case(:duplicate, group, busiest(group)) if group.again >= @repeats - 1
      end

      def new_case(kind, group, site, link: nil, parent: nil)
        Case.new(kind: kind, group: group, site: site, link: link, parent: parent, models: Detect.models(link&.model), groups: [group])
      end

      # The witnessed association, or the only one among the loaded models that asks like this.
      def link_of(group)
        return Detect.models(group.owner)&.link(group.owner, group.association) if group.association

        derived = loaded_models.flat_map { |model| Detect.models(model).links(model) }.select { |link| link.asked_by?(group.shape) }
        derived.min_by { |link| [link.through ? 1 : 0, link.to == :many ? 0 : 1] }
      end

      def loaded_models
        @loaded_models ||= @tally.loads.map(&:model).uniq.filter_map do |name|
          model = Object.const_get(name)
          model if Detect.models(model)
        rescue NameError
          nil
        end
      end

      def busiest(group) = group.sites.max_by { |_site, count| count }&.first

      # @return [Integer, nil] the site that alone has enough
      def crowded(group)
        site, count = group.sites.max_by { |_site, number| number }
        site if count && count >= @repeats
      end

      def finding(one, fix)
        text, refused = fix.of(one)
        Finding.new(kind: one.kind, count: one.count, cached_count: one.cached, fingerprint: one.group.shape.fingerprint,
                    location: CallSite.location(one.site), association: one.link&.to_s, total_ns: one.total_ns,
                    parent_location: CallSite.location(one.parent&.site), parent_count: one.parent&.count,
                    parent_model: one.parent&.model&.name, preload: fix.tree(one), remedy: fix.remedy(one), fix: text, fix_refused: refused,
                    source: one.site && CallSite.source(one.site))
      end
    end
  end
end
