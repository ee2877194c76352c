# frozen_string_literal: true

module Castellan
  module Detect
    # Finds eager loads that many requests never read, or only counted.
    #
    #   evidence = Castellan::Detect::Evidence.new(requests: 20)
    #   evidence.watch { get("/users") }     # for each observed request
    #   evidence.findings                    # => [unused_eager_load: … take :posts out of the preload at …]
    #
    # A finding needs `requests` observations of a load at one line, none of which read the association, at
    # any endpoint. Associations that ever repeated queries are excluded, so that findings do not contradict
    # each other. Keeps the MOST recently seen loads. Thread-safe. While an instance listens,
    # {Instrument::EagerInstrument} reports every read of an association: here until {stop}, in a server
    # ({Sampled}) only during sampled requests.
    class Evidence
      MOST = 500
      REQUESTS = 20

      # The observations of one association at one line. `model` is a class name, because classes may be
      # reloaded.
      Entry = Struct.new(:site, :model, :association, :times, :records, :read, :counted)
      private_constant :Entry

      # @param requests [Integer] the number of observations that make a finding, 2 or more
      # @param listen [Boolean] whether to subscribe to reads of associations now
      # @raise [ConfigurationError] if `requests` is below 2
      def initialize(requests: REQUESTS, listen: true)
        @requests = Integer(requests)
        raise ConfigurationError, "requests: must be 2 or more, because one proves nothing; got #{@requests}" if @requests < 2

        @entries = {}
        @repeated = {}
        @lock = Mutex.new
        @listening = listen
        Instrument::EagerInstrument.subscribe if listen
      end

      # Observes one request.
      # @yield runs the request
      # @return [Object] the result of the block
      def watch(&work)
        use = EagerUse.new
        tally = Tally.new
        result = Instrument.record(use) { Instrument.record(tally, &work) }
        observe(use, Verdict.new(tally).findings)
        result
      end

      # @param use [EagerUse] the observer of one request
      # @param findings [Array<Finding>] findings of the same request
      # @return [Array<Finding>] the proven findings among this request's loads
      def observe(use, findings = [])
        entries = @lock.synchronize do
          findings.each { |finding| @repeated[finding.association] = true if finding.association && finding.repeats? && room? }
          use.filter_map { |site, model, association, records, how| add([site, model.name, association], records, how) }
             .select { |entry| proven?(entry) }.map(&:dup)
        end
        entries.filter_map { |entry| finding(entry) }
      end

      # @param finding [Finding] an earlier finding
      # @return [Boolean] whether it still holds
      def holds?(finding) = findings.any? { |one| SAME.all? { |member| one[member] == finding[member] } }

      # @return [Array<Finding>] the most frequent loads first
      def findings
        enough = @lock.synchronize { @entries.values.select { |entry| proven?(entry) }.map(&:dup) }
        enough.sort_by { |entry| -entry.times }.filter_map { |entry| finding(entry) }
      end

      # Unsubscribes from reads of associations.
      # @return [void]
      def stop
        Instrument::EagerInstrument.unsubscribe if @listening
        @listening = false
      end

      SAME = %i[kind location association].freeze
      private_constant :SAME

      private

      def room? = @repeated.size < MOST

      # Skips anonymous classes, which cannot be found by name later.
      def add(key, records, how)
        return if key[1].nil?

        entry = @entries[key] = @entries.delete(key) || Entry.new(*key, 0, 0, 0, 0)
        @entries.shift if @entries.size > MOST
        entry.times += 1
        entry.records += records
        entry.read += 1 if how == :read
        entry.counted += 1 if how == :counted
        entry
      end

      # Loading one record at a time saves no query, so it is not a wasted eager load.
      def proven?(entry)
        return false if @repeated["#{entry.model}##{entry.association}"]

        entry.times >= @requests && entry.read.zero? && entry.records > entry.times
      end

      def finding(entry)
        model = model_of(entry) or return
        link = Detect.models(model)&.link(model, entry.association) or return
        return told(entry, link, :unused_eager_load, take_out(entry, link)) if entry.counted.zero?

        text, refused = count_in_a_column(entry, link)
        told(entry, link, :counter_cache, text, refused)
      end

      def model_of(entry)
        Object.const_get(entry.model)
      rescue NameError
        nil # the class was removed
      end

      def told(entry, link, kind, fix, refused = nil)
        location = CallSite.location(entry.site)
        Finding.new(kind: kind, count: entry.times, cached_count: 0, location: location, parent_location: location,
                    parent_count: entry.records / entry.times, parent_model: entry.model, association: link.to_s, fix: fix,
                    fix_refused: refused, source: entry.site && CallSite.source(entry.site))
      end

      def take_out(entry, link)
        "take :#{link.name} out of what is loaded with the #{Words.plural(link.model)} at #{CallSite.location(entry.site)}: " \
          "in #{entry.times} requests nobody read it"
      end

      # @return [Array(String, nil), Array(nil, String)] the fix, or the reason why there is none
      def count_in_a_column(entry, link)
        unless link.foreign && link.through.nil? && link.type.nil? && link.target
          return [nil, "#{link} is only counted, but a counter cache needs a belongs_to on the other side"]
        end

        column = "#{link.name}_count"
        ["add a column #{column} to the table of #{entry.model}, write belongs_to …, counter_cache: :#{column} in " \
         "#{link.target.name}, and take :#{link.name} out of what is loaded at #{CallSite.location(entry.site)}: in #{entry.times} " \
         "requests it was only counted, and .size reads the column", nil]
      end
    end
  end
end
