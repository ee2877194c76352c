# frozen_string_literal: true

module Castellan
  module Detect
    # Caches verdicts of identical requests, such as reloads of a page in development. A verdict takes most of
    # a millisecond, because it reads models and source files.
    #
    #   verdicts = KnownVerdicts.new(repeats: 2, min_ns: 0)
    #   verdicts.findings(tally)   # => the result of Verdict.new(tally, repeats: 2, min_ns: 0).findings
    #
    # Requests are identical if they send the same statements through the same associations from the same
    # lines, equally often, in the same order and for as many records, while neither the lines' files nor the
    # models have changed. The times are always the current request's. Requests with writes, with batch reads
    # outside of associations, or with associations over several tables are never cached. Every AGAIN-th
    # request is judged anew. Keeps MOST verdicts. Thread-safe.
    class KnownVerdicts
      AGAIN = 50
      MOST = 100
      MOST_GROUPS = 100

      # `parts` holds, per finding, the indices of the groups whose statements it counts.
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

      # Builds the cache key from everything that a verdict reads.
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

      # Uses object_id, which is never reused, so that the cache does not retain reloaded classes.
      def model(name)
        Object.const_get(name).object_id
      rescue NameError
        nil
      end

      def models(group) = group.shape.models.map(&:object_id)

      # The file's modification time and size.
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

      # Caches only if the statements that make up each finding's time are certain.
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
