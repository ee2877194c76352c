# frozen_string_literal: true

module Castellan
  module Profile
    # Counts allocated and retained bytes and objects by gem, file, line and class, with memory_profiler.
    #
    #   memory = MemoryDepth.new("memory")
    #   memory.start
    #   work
    #   memory.stop     # => { total_allocated: 5_120, …, by_gem: [{ name: "activerecord-7.2.3", … }] }
    #
    # Makes the work many times slower: memory_profiler observes all allocations of the process and collects
    # garbage before and after. Castellan's own allocations are left out.
    class MemoryDepth
      TOP = 50
      ALL = 1 << 30
      # Absolute paths, because the application may have files with the same names.
      OWN = %r{\A#{Regexp.escape(__FILE__.delete_suffix("profile/memory_depth.rb"))}
               (?:profile/|detect/|instrument/|instrument\.rb|recording\.rb|call_site\.rb|fingerprint\.rb)}x
      GROUPS = { by_gem: "gem", by_file: "file", by_line: "location", by_class: "class" }.freeze
      private_constant :ALL, :GROUPS, :OWN

      # @return [String, nil] a note if the gem is missing
      def self.missing
        require "memory_profiler"
        nil
      rescue LoadError
        "memory needs the gem memory_profiler: add it to the Gemfile; only SQL was recorded"
      end

      # @param _depth [String] "memory"
      def initialize(_depth); end

      # @return [Symbol] the member of {Result} that it fills
      def fills = :memory

      # @return [Boolean] false if memory_profiler already runs
      def start
        return false if MemoryProfiler::Reporter.current_reporter

        @reporter = MemoryProfiler::Reporter.new(top: ALL, ignore_files: OWN)
        @reporter.start
        true
      end

      # @return the result of the block
      def around = yield

      # @return [Hash] see {Result#memory}
      def stop
        results = @reporter.stop
        { total_allocated: results.total_allocated, total_retained: results.total_retained,
          total_allocated_bytes: results.total_allocated_memsize, total_retained_bytes: results.total_retained_memsize,
          **GROUPS.transform_values { |group| rows(results, group) } }
      end

      private

      # memory_profiler has a list for each figure; merges them into one row per name, for the names at the top of any list.
      def rows(results, group)
        lists = { allocated: "allocated_objects", retained: "retained_objects", allocated_bytes: "allocated_memory",
                  retained_bytes: "retained_memory" }
        found = Hash.new { |named, name| named[name] = { name: name, **lists.transform_values { 0 } } }
        lists.each do |figure, list|
          results.public_send("#{list}_by_#{group}").each { |one| found[name(one[:data])][figure] = one[:count] }
        end
        rows = found.values
        lists.keys.flat_map { |figure| rows.max_by(TOP) { |row| row[figure] }.select { |row| row[figure].positive? } }.uniq
             .sort_by { |row| [-row[:allocated_bytes], -row[:retained_bytes], row[:name]] }
      end

      def name(text) = Redaction.text(text.to_s).delete_prefix("#{CallSite.root}/")
    end
  end
end
