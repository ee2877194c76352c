# frozen_string_literal: true

module Castellan
  module Detect
    # Finds eager loads that no request reads.
    #
    #   evidence = Castellan::Detect::Evidence.new(0.01)   # samples 1% of the requests
    #   evidence.watch { get("/users") }                   # for each request
    #   evidence.findings                                  # => [unused_eager_load: … take :posts out of the preload at …]
    #
    # A finding needs `requests` observations of an eager load at one line, and no read of the association at
    # any endpoint. An association that ever repeated queries is excluded, so that two findings do not
    # contradict each other, and so is an association that a JOIN loads, because conditions may need the JOIN.
    # Keeps the last MOST loads. Thread-safe. {Instrument::EagerInstrument} reports reads of associations
    # during sampled requests only.
    class Evidence
      MOST = 500
      REQUESTS = 20

      # Sums up the observations of one association at one line.
      # `model` is a class name, because classes may be reloaded.
      Entry = Struct.new(:site, :model, :association, :times, :records, :read)
      private_constant :Entry

      # Records which associations a request and its threads preload, where, and which of them they read.
      # {Recording} and {Instrument::EagerInstrument} call its methods.
      class Use
        include Enumerable

        MOST = 200

        def initialize
          @loads = Hash.new(0)
          @used = {}
          @passed = {}
        end

        def query(*); end
        def strand = self

        def preloaded(model, association, records)
          key = [CallSite.current, model, association]
          @loads[key] += records if @loads.size < MOST || @loads.key?(key)
        end

        def passed(model, association) = @passed[[model, association]] = true
        def used(model, association) = (@used[model] ||= {})[association] = true

        # @yield [site, model, association, records, read]
        def each
          @loads.each do |(site, model, association), records|
            yield site, model, association, records, !@used.dig(model, association).nil? unless @passed[[model, association]]
          end
        end
      end

      # @param share [Numeric, false, nil] the share of requests to sample, from 0 to 1; false and nil mean 0
      # @param requests [Integer] the number of observations that make a finding, 2 or more
      # @raise [ConfigurationError] if a value is out of range
      def initialize(share = 1, requests: REQUESTS)
        @share = Float(share || 0, exception: false)
        @requests = Integer(requests)
        OptionCheck.check(self.class, :evidence, share, "a share from 0 to 1, or false", 0.1) { @share&.finite? && @share.between?(0, 1) }
        raise ConfigurationError, "requests: must be 2 or more, because one proves nothing; got #{@requests}" if @requests < 2

        @entries = BoundedCache.new(limit: 2 * MOST)
        @repeated = {}
        @announced = {}
        @lock = Mutex.new
      end

      # Observes one request if it is sampled.
      # @yield the request
      # @return [Object] the result of the block
      def watch(&work)
        use = self.begin or return yield

        tally = Tally.new
        begin
          Instrument.record(use) { Instrument.record(tally, &work) }
        ensure
          finish(use, tally)
        end
      end

      # Starts to observe the reads of one request; call {#finish} after it.
      # @return [Use, nil] nil if this request is not sampled
      def begin
        return if rand >= @share

        Instrument::EagerInstrument.subscribe
        Use.new
      end

      # @param use [Use]
      # @param tally [Tally] the tally of the same request
      # @return [Array<Finding>] the unused eager loads among the loads of this request
      def finish(use, tally)
        Instrument::EagerInstrument.unsubscribe
        observe(use, Verdict.new(tally).repetitions)
      end

      # @param loads [Enumerable] see {Use#each}
      # @param findings [Array<Finding>] of any request; eager loads of their associations are never reported
      # @return [Array<Finding>] the unused eager loads among these loads
      def observe(loads, findings = [])
        @lock.synchronize do
          findings.each { |one| @repeated[one.association] = true if one.association && one.repeats? && @repeated.size < MOST }
          loads.filter_map { |site, model, association, records, read| add([site, model.name, association], records, read) }.map(&:dup)
        end.filter_map { |entry| finding(entry) }
      end

      # @param findings [Array<Finding>]
      # @return [Array<Finding>] the findings that this method has not received before
      def news(findings)
        @lock.synchronize do
          findings.select do |finding|
            key = [finding.location, finding.association]
            @announced[key] = true if @announced.size < MOST && !@announced.key?(key)
          end
        end
      end

      # @param finding [Finding] an earlier finding
      # @return [Boolean] false if it is an eager load that has been used since
      def holds?(finding)
        !finding.of_many_requests? || findings.any? { |one| [one.location, one.association] == [finding.location, finding.association] }
      end

      # @return [Array<Finding>] the most frequent loads first
      def findings
        @lock.synchronize { @entries.values.last(MOST).map(&:dup) }.sort_by { |entry| -entry.times }.filter_map { |entry| finding(entry) }
      end

      private

      # Skips anonymous classes, because they cannot be found by name later.
      def add(key, records, read)
        return if key[1].nil?

        entry = @entries.fetch(key) { Entry.new(*key, 0, 0, false) }
        entry.times += 1
        entry.records += records
        entry.read ||= read
        entry
      end

      # An eager load of one record at a time saves no query, so it is not reported.
      def proven?(entry)
        !@repeated["#{entry.model}##{entry.association}"] && entry.times >= @requests && !entry.read && entry.records > entry.times
      end

      # @return [Finding, nil] nil if the load may be used, or if the class was removed
      def finding(entry)
        return unless proven?(entry)

        model = Detect.model(entry.model) or return
        link = Detect.models(model).link(model, entry.association) or return
        location = CallSite.location(entry.site)
        fix = "take :#{link.name} out of what is loaded with the #{Words.plural(link.model)} at #{location}: " \
              "no code read it in #{entry.times} requests"
        Finding.new(kind: :unused_eager_load, count: entry.times, cached_count: 0, location: location, parent_location: location,
                    parent_count: entry.records / entry.times, parent_model: entry.model, association: link.to_s, fix: fix,
                    source: entry.site && CallSite.source(entry.site))
      end
    end
  end
end
