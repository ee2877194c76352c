# frozen_string_literal: true

module Castellan
  module Detect
    # Verdicts on requests that are asked again and again, as a page in development is. A verdict reads models and source files and takes
    # the better part of a millisecond; one on a request that did the same as an earlier one is that one's.
    #
    #   verdicts = KnownVerdicts.new(repeats: 2, min_ns: 0)
    #   verdicts.findings(tally)   # => what Verdict.new(tally, repeats: 2, min_ns: 0).findings answers
    #
    # The same is: the same statements through the same associations from the same lines, as often and in the same order, of as many
    # records, while none of these lines' files was written and no model was loaded anew. The time in a finding is always its request's.
    # Every request is judged where values decide (ranges and pages outside an association), where something was written, and where
    # one association asks several tables. Judged anew every AGAIN times; keeps MOST. May be asked by several threads.
    class KnownVerdicts
      AGAIN = 50
      MOST = 100
      MOST_GROUPS = 100

      # `parts` are, for each finding, the indices of the groups whose statements it counts.
      Known = Struct.new(:findings, :parts, :times)
      private_constant :Known

      def initialize(repeats: 2, min_ns: 0)
        @repeats = repeats
        @min_ns = min_ns
        @known = {}
        @lock = Mutex.new
      end

      # @param tally [Tally]
      # @return [Array<Finding>]
      def findings(tally)
        groups = tally.groups
        key = comparable?(groups) && likeness(groups, tally.loads)
        known = key && @lock.synchronize { @known[key] }
        found = known && (known.times += 1) < AGAIN ? timed(known, groups) : judge(tally, key, groups)
        found + tally.single_findings
      end

      private

      def judge(tally, key, groups)
        found = Verdict.new(tally, repeats: @repeats, min_ns: @min_ns).repetitions
        keep(key, found, groups) if key
        found
      end

      def comparable?(groups)
        walks = groups.select(&:association).map { |group| [group.owner, group.association] }
        groups.size <= MOST_GROUPS && walks.uniq.size == walks.size &&
          groups.none? { |group| group.shape.write? || (group.pieces && group.count >= @repeats) }
      end

      # All that a verdict looks at.
      def likeness(groups, loads)
        sites = [*groups.flat_map { |group| group.sites.keys }, *loads.map(&:site)].compact
        [groups.map { |group| seen(group) }, groups.each_index.sort_by { |index| groups[index].started_ns.to_i }, loads.map(&:to_a),
         loads.map(&:model).uniq.map { |name| model(name) }, sites.map { |site| CallSite.path(site) }.uniq.map { |path| written(path) }]
      end

      def seen(group)
        [group.shape, group.owner.object_id, group.association, group.order, group.count, group.cached, group.again, group.quietly,
         group.different, group.polling?, group.span_ns >= @min_ns, group.sites.to_a, group.stack,
         group.count >= @repeats && models(group)]
      end

      # By number, which is never given again, so that no class is kept alive that was loaded anew.
      def model(name)
        Object.const_get(name).object_id
      rescue NameError
        nil
      end

      def models(group) = group.shape.models.map(&:object_id)

      # When a file was written, and how long it is.
      def written(path)
        stat = File.stat(File.expand_path(path, CallSite.root))
        [path, stat.mtime, stat.size]
      rescue SystemCallError
        path
      end

      def timed(known, groups)
        known.findings.zip(known.parts).map do |finding, parts|
          Finding.new(**finding.to_h, total_ns: parts.sum { |index| groups[index].total_ns })
        end
      end

      # Kept where it is certain which statements make a finding's time.
      def keep(key, findings, groups)
        parts = findings.map { |finding| parts(finding, groups) }
        return if parts.include?(nil)

        @lock.synchronize do
          @known.clear if @known.size >= MOST
          @known[key] = Known.new(findings, parts, 0)
        end
      end

      def parts(finding, groups)
        alike = groups.each_index.select { |index| groups[index].shape.fingerprint == finding.fingerprint }
        walked = groups.each_index.select { |index| groups[index].association && walk(groups[index]) == finding.association }
        [walked, alike].find { |some| some.any? && some.sum { |index| groups[index].total_ns } == finding.total_ns }
      end

      def walk(group) = "#{group.owner.name}##{group.association}"
    end
  end
end
