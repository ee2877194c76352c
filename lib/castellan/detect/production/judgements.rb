# frozen_string_literal: true

module Castellan
  module Detect
    class Production
      # The verdicts on requests, each passed once: a request whose statements repeat as in one that was judged before is only counted.
      # A verdict reads models and source files and takes some 200 µs, which a page that is slow anyway should not pay again and again.
      #
      #   judgements = Judgements.new(repeats: 5, min_ns: 300_000_000)
      #   judgements.of(tally)   # => [[finding, 101, 38_000_000]]: what repeats, how many statements and nanoseconds this time
      #
      # Judged anew every AGAIN times, because what a verdict says may change with the data. Keeps MOST; starts anew when there are more.
      # May be asked by several threads.
      class Judgements
        AGAIN = 200
        MOST = 500

        # What was said of requests like this, and how often it was repeated since.
        Judgement = Struct.new(:findings, :times)
        private_constant :Judgement

        def initialize(repeats:, min_ns:)
          @repeats = repeats
          @min_ns = min_ns
          @judgements = {}
          @lock = Mutex.new
        end

        # @param tally [Tally]
        # @return [Array<Array(Finding, Integer, Integer)>]
        def of(tally)
          repeated(tally, suspects(tally)) + tally.single_findings.map { |finding| [finding, finding.count, finding.total_ns.to_i] }
        end

        private

        def repeated(tally, suspects)
          return suspects if suspects.empty?

          findings(tally, suspects).map { |finding| [finding, *sums(finding, suspects)] }
        end

        # Nothing is made for a request that repeats nothing.
        def suspects(tally)
          return [] unless tally.repeats?(@repeats, @min_ns)

          tally.groups.select { |group| group.count >= @repeats && group.span_ns >= @min_ns }
        end

        def findings(tally, suspects)
          key = [suspects.map { |group| likeness(group) }, tally.loads.map { |load| [load.site, load.model, load.joined] }]
          known = @lock.synchronize { @judgements[key] }
          return known.findings if known && (known.times += 1) < AGAIN

          Verdict.new(tally, repeats: @repeats, min_ns: @min_ns).repetitions.tap { |findings| keep(key, findings) }
        end

        # What was asked, from where, and whether for the same; with it, where records were loaded.
        def likeness(group)
          [group.shape.fingerprint, group.owner, group.association, group.sites.keys, group.different == 1, group.again.zero?]
        end

        def keep(key, findings)
          @lock.synchronize do
            @judgements.clear if @judgements.size >= MOST
            @judgements[key] = Judgement.new(findings.freeze, 0)
          end
        end

        def sums(finding, suspects)
          groups = suspects.select { |group| group.shape.fingerprint == finding.fingerprint }
          groups |= suspects.select { |group| group.association && "#{group.owner.name}##{group.association}" == finding.association }
          [groups.sum(&:count), groups.sum(&:total_ns)]
        end
      end
    end
  end
end
