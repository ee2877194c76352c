# frozen_string_literal: true

module Castellan
  module Detect
    # Collects over many requests what was loaded eagerly and never read, or only counted.
    #
    #   evidence = Castellan::Detect::Evidence.new(requests: 20)
    #   evidence.watch { get("/users") }     # for each request that is looked at
    #   evidence.findings                    # => [unused_eager_load: … take :posts out of the preload at …]
    #
    # A finding needs `requests` observations of a load, none of which read the association, at whatever endpoint: a load is a
    # line, and what one page does not need another may. An association that repeated queries at any time is left alone, so that
    # one finding never asks for what another takes away. Bounded: MOST loads are kept, those seen last. Safe to share between threads.
    # Every read of an association is told while somebody listens ({Instrument::EagerInstrument}): here until {stop}, and in a server
    # ({Sampled}) only during the requests that are looked at.
    class Evidence
      MOST = 500
      REQUESTS = 20

      # What is known of one association loaded at one place. `model` is the name of a class, which may be loaded anew.
      Entry = Struct.new(:site, :model, :association, :times, :records, :read, :counted)
      private_constant :Entry

      # @param requests [Integer] how many observations make a finding
      # @param listen [Boolean] whether every read is to be told from now on
      def initialize(requests: REQUESTS, listen: true)
        @requests = Integer(requests)
        raise ConfigurationError, "requests: must be 2 or more, because one proves nothing; got #{@requests}" if @requests < 2

        @entries = {}
        @repeated = {}
        @lock = Mutex.new
        @listening = listen
        Instrument::EagerInstrument.subscribe if listen
      end

      # Looks at one request.
      # @yield the work
      # @return what the block returns
      def watch(&work)
        use = EagerUse.new
        tally = Tally.new
        result = Instrument.record(use) { Instrument.record(tally, &work) }
        observe(use, Verdict.new(tally).findings)
        result
      end

      # @param use [EagerUse] of one request
      # @param findings [Array<Finding>] of the same request
      # @return [Array<Finding>] what is proven by now of that which this request loaded
      def observe(use, findings = [])
        entries = @lock.synchronize do
          findings.each { |finding| @repeated[finding.association] = true if finding.association && finding.repeats? && room? }
          use.filter_map { |site, model, association, records, how| add([site, model.name, association], records, how) }
             .select { |entry| proven?(entry) }.map(&:dup)
        end
        entries.filter_map { |entry| finding(entry) }
      end

      # @param finding [Finding] one that was proven
      # @return [Boolean] whether it still is
      def holds?(finding) = findings.any? { |one| SAME.all? { |member| one[member] == finding[member] } }

      # @return [Array<Finding>] what is loaded most often first
      def findings
        enough = @lock.synchronize { @entries.values.select { |entry| proven?(entry) }.map(&:dup) }
        enough.sort_by { |entry| -entry.times }.filter_map { |entry| finding(entry) }
      end

      # No more reads are told.
      # @return [void]
      def stop
        Instrument::EagerInstrument.unsubscribe if @listening
        @listening = false
      end

      SAME = %i[kind location association].freeze
      private_constant :SAME

      private

      def room? = @repeated.size < MOST

      # A class without a name cannot be found again.
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

      # One record at a time is no set for which a statement was saved.
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
        nil # the class is gone
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

      # @return [Array(String, nil), Array(nil, String)]
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
