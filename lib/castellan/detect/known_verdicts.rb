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
    # outside of associations, or with associations over several tables are never cached. Keeps MOST verdicts.
    # Thread-safe.
    class KnownVerdicts
      MOST = 100
      MOST_GROUPS = 100

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
        key = key(groups, tally.loads) if comparable?(groups)
        known = key && @lock.synchronize { @known[key] }
        found = known&.map { |finding, parts| Finding.new(**finding.to_h, total_ns: time(groups, parts)) }
        (found || judge(tally, key, groups)) + tally.single_findings
      end

      private

      def judge(tally, key, groups)
        found = Verdict.new(tally, repeats: @repeats, min_ns: @min_ns).repetitions
        parts = key && found.map { |finding| parts(finding, groups) }
        keep(key, found.zip(parts)) if parts && !parts.include?(nil)
        found
      end

      def keep(key, found)
        @lock.synchronize do
          @known.clear if @known.size >= MOST
          @known[key] = found
        end
      end

      def comparable?(groups)
        walks = groups.select(&:association).map { |group| [group.owner, group.association] }
        groups.size <= MOST_GROUPS && walks.uniq.size == walks.size &&
          groups.none? { |group| group.shape.write? || (group.pieces && group.count >= @repeats) }
      end

      # Everything that a verdict reads. Uses object_id, which is never reused, so that the cache does not retain
      # reloaded classes.
      def key(groups, loads)
        sites = [*groups.flat_map { |group| group.sites.keys }, *loads.map(&:site)].compact
        [groups.map { |group| seen(group) }, groups.each_index.sort_by { |index| groups[index].started_ns.to_i }, loads.map(&:to_a),
         loads.map(&:model).uniq.map { |name| class_id(name) }, sites.map { |site| CallSite.path(site) }.uniq.map { |path| stamp(path) }]
      end

      def seen(group)
        [group.shape, group.owner.object_id, group.association, group.order, group.count, group.cached, group.again,
         group.unchanged_repeats, group.different, group.polling?, group.span_ns >= @min_ns, group.sites.to_a, group.stack,
         group.count >= @repeats && group.shape.models.map(&:object_id)]
      end

      def class_id(name)
        Object.const_get(name).object_id
      rescue NameError
        nil
      end

      def stamp(path)
        stat = File.stat(File.expand_path(path, CallSite.root))
        [path, stat.mtime, stat.size]
      rescue SystemCallError
        path
      end

      def time(groups, parts) = parts.sum { |index| groups[index].total_ns }

      # @return [Array<Integer>, nil] the indices of the groups whose statements a finding counts; nil if they are
      #   not certain
      def parts(finding, groups)
        alike = groups.each_index.select { |index| groups[index].shape.fingerprint == finding.fingerprint }
        walked = groups.each_index.select do |index|
          group = groups[index]
          group.association && "#{group.owner.name}##{group.association}" == finding.association
        end
        [walked, alike].find { |some| some.any? && time(groups, some) == finding.total_ns }
      end
    end
  end
end
