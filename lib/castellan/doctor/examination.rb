# frozen_string_literal: true

require_relative "../clock"
require_relative "../measurement"
require_relative "../recording"
require_relative "../instrument"
require_relative "../detect"
require_relative "../profile"

module Castellan
  module Doctor
    # Measures one request of an application, in transactions that are rolled back.
    #
    #   examination = Examination.new(application, request).call
    #   examination.measurement   # => Measurement of the median run
    #   examination.findings      # => [Finding]
    #
    # Sends the request to warm up, then with a profile for findings and tables, then for the measurements,
    # then to count memory. Objects are counted for the whole process, so background threads of the
    # application must be idle.
    class Examination
      RUNS = 5
      # After this total time, no further measured run starts.
      BUDGET_NS = 2_000_000_000
      # The memory of slower requests is not counted, because counting takes several times as long as the
      # request.
      SLOWEST_WITH_MEMORY_NS = 5_000_000_000

      # @return [RackRequest]
      # @return [Measurement]
      # @return [Integer] the number of measured runs; 0 if there was only time for the profiled run
      # @return [Array<Integer>] the shortest and longest duration of the measured runs, in nanoseconds; empty without runs
      # @return [Array<Finding>]
      # @return [Profile::Result] of one run
      # @return [String] the body of the response
      # @return [String, nil] the step that was left out at the limit of {Progress}
      attr_reader :request, :measurement, :runs, :range_ns, :findings, :profile, :body, :left_out

      # @param runs [Integer] the maximum number of measured runs
      # @param memory [Boolean] whether to count memory, which takes several times as long as the request
      # @param progress [Progress]
      def initialize(application, request, runs: RUNS, memory: true, progress: Progress.new)
        @progress = progress
        @application = application
        @request = request
        @most_runs = runs
        @memory = memory
      end

      # @raise [Error] if a response is not 2xx, or the limit was reached before anything was measured
      def call
        check
        step("watching for repeated queries") { watch } or
          raise Error, "#{request}: #{@progress.reached} before a request was measured"
        @measurement = measured
        self
      end

      # Sends the request once without measuring, to compare its response with another.
      # @raise [Error] if the response is not 2xx, or the limit was reached
      def check
        answer = step("the first request") { Sandbox.rolled_back { respond } } or
          raise Error, "#{request}: #{@progress.reached} before it was answered"
        @body = answer.body
        self
      end

      # @return [Array<String>] tables that the request reads
      def tables
        fingerprints = profile.queries.map { |query| query[:fingerprint] }.uniq
        fingerprints.flat_map { |fingerprint| Instrument::Counter.tables(fingerprint) }
                    .map { |name| name.split(".").last }.uniq.sort
      end

      private

      # @return [Object, nil] the result of the block; nil if the limit was reached
      def step(text, &block)
        @progress.step = "#{request}: #{text}"
        @progress.within(&block).tap { |result| @left_out ||= text unless result }
      end

      # Uses a profiler session, so that the doctor reports the same findings as the profiler's page.
      def watch
        session = Profile::Session.new
        Sandbox.rolled_back { session.record { respond } }
        @findings = session.findings
        @profile = session.finish
      ensure
        session&.close
      end

      def respond
        answer = Answer.to(@application, request.env)
        reason = Refusal.of(answer, request)
        reason ? raise(Error, reason) : answer
      end

      # @return [Measurement] of the median run; its memory comes from another run
      def measured
        runs = measured_runs
        @runs = runs.size
        @range_ns = []
        return of_profile if runs.empty?

        sorted = runs.sort_by(&:duration_ns)
        median = sorted[(runs.size - 1) / 2]
        @range_ns = sorted.values_at(0, -1).map(&:duration_ns)
        return median unless @memory && median.duration_ns < SLOWEST_WITH_MEMORY_NS

        Measurement.new(**median.to_h, **(step("counting memory") { Memory.of { Sandbox.rolled_back { respond } } } || {}))
      end

      def measured_runs
        runs = []
        while runs.size < @most_runs && runs.sum(&:duration_ns) < BUDGET_NS
          run = step("measured run #{runs.size + 1} of at most #{@most_runs}") { MeasuredRun.call { respond } } or break
          runs << run.measurement
        end
        runs
      end

      # The limit was reached before a measured run, so the profiled run is the only one.
      def of_profile
        Measurement.new(duration_ns: profile.duration_ns, sql_ns: profile.parts[:sql_ns], status: 200,
                        queries: profile.totals[:queries], cached_queries: profile.totals[:cached_queries],
                        allocated_objects: profile.objects[:count], response_bytes: @body.bytesize)
      end
    end
  end
end
