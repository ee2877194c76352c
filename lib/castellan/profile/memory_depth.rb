# frozen_string_literal: true

module Castellan
  module Profile
    # Bytes and objects, allocated and retained, by gem, file, line and class, counted by memory_profiler.
    #
    #   memory = MemoryDepth.new
    #   memory.start
    #   work
    #   memory.stop     # => { total_allocated: 5_120, …, by_gem: [{ name: "activerecord-7.2.3", allocated: 2_000, … }] }
    #
    # Many times as slow as the work. It counts what the whole process makes meanwhile, as memory_profiler does. Collects garbage before and
    # after, so what it says is retained is what somebody still holds. What the recording itself makes is left out.
    class MemoryDepth
      TOP = 50
      # Of the gem's folder: an application may have one of that name, too.
      OWN = %r{\A#{Regexp.escape(__FILE__.delete_suffix("profile/memory_depth.rb"))}
               (?:profile/|detect/|instrument/|instrument\.rb|recording\.rb|call_site\.rb|fingerprint\.rb)}x
      GROUPS = { by_gem: "gem", by_file: "file", by_line: "location", by_class: "class" }.freeze
      private_constant :GROUPS, :OWN

      # @return [String, nil] why it cannot be had
      def self.missing
        require "memory_profiler"
        nil
      rescue LoadError
        "memory needs the gem memory_profiler, which this application does not have: SQL was recorded; add it to the Gemfile"
      end

      # @return [Symbol] what of a {Result} it fills
      def fills = :memory

      # @return [Boolean] whether it could be started
      def start
        return false if MemoryProfiler::Reporter.current_reporter

        @reporter = MemoryProfiler::Reporter.new(top: TOP, ignore_files: OWN)
        @reporter.start
        true
      end

      # @return what the block returns
      def around = yield

      # @return [Hash] see {Result}
      def stop
        results = @reporter.stop
        { total_allocated: results.total_allocated, total_retained: results.total_retained,
          total_allocated_bytes: results.total_allocated_memsize, total_retained_bytes: results.total_retained_memsize,
          **GROUPS.transform_values { |group| rows(results, group) } }
      end

      private

      # memory_profiler has a list for each figure; a row here has them all.
      def rows(results, group)
        lists = { allocated: "allocated_objects", retained: "retained_objects", allocated_bytes: "allocated_memory",
                  retained_bytes: "retained_memory" }
        rows = lists.each_with_object({}) do |(figure, list), named|
          results.public_send("#{list}_by_#{group}").each { |one| (named[name(one[:data])] ||= {})[figure] = one[:count] }
        end
        rows.map { |name, figures| { name: name, **lists.transform_values { 0 }, **figures } }
            .sort_by { |row| [-row[:allocated_bytes], -row[:retained_bytes], row[:name]] }
      end

      def name(text) = Redaction.text(text.to_s).delete_prefix("#{CallSite.root}/")
    end
  end
end
