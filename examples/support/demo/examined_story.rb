# frozen_string_literal: true

module Castellan
  module Demo
    # Examines a story's requests one by one: the doctor runs each step in a process of the application.
    #
    # Before and after every step it sends the `unchanged` requests, which must return the same JSON.
    class ExaminedStory
      FIGURES = %w[duration_ms sql_ms queries allocated_objects allocated_bytes retained_objects retained_bytes response_bytes].freeze
      private_constant :FIGURES

      # @param story [Story]
      # @param example [Example]
      # @param progress [Progress]
      # @param memory [Boolean] whether to count bytes, in a run that takes many times as long
      # @param runs [Integer] the number of measured runs of each request; the median counts
      def initialize(story, example, progress, memory: true, runs: 3)
        @story = story
        @example = example
        @progress = progress
        @options = { memory: memory, runs: runs }
        @bodies = {}
        @unchanged = {}
      end

      # @yieldparam row [Hash{Symbol => Object}] the fields of a ledger row, as soon as its step is measured
      # @return [void]
      def call(&block)
        plain, with_castellan = @story.steps.partition { |step| !step.with_castellan }
        examine(@example, plain, &block)
        examine(@example.with("WITH_CASTELLAN" => "1"), with_castellan, &block)
      end

      private

      def examine(example, steps)
        return if steps.empty?

        pending = targets(steps)
        example.doctor(pending.map { |step, path| [path, !step.nil?] }, headers: @story.headers, **@options) do |found|
          step, path = pending.shift
          step ? @progress.step(step.title) { yield row(step, found) } : still(path, found["body"])
        end
      end

      def targets(steps)
        shown = @story.unchanged.map { |path| [nil, path] }
        shown + steps.flat_map { |step| [[step, step.get], *shown] }
      end

      def still(path, body)
        difference = @unchanged.key?(path) && Comparison.new(@unchanged[path], body).difference
        raise Error, "#{@story.name}: #{path} must stay as it was, but #{difference}" if difference

        @unchanged[path] ||= body
      end

      def row(step, found)
        @bodies[step.id] = found["body"]
        found.slice(*FIGURES).transform_keys(&:to_sym)
             .merge(story: @story.name, step: step.title, story_value: step.story_value&.fetch("duration_ms"),
                    finding: finding(found["findings"]), **verdict(step))
      end

      def verdict(step)
        difference = difference(step) if step.compared_with
        raise Error, "#{@story.name}: #{step.id} must send what #{step.compared_with} sends, but #{difference}" if difference && !step.told

        { id: step.id, code: @story.code(step), against: @story.step(step.compared_with)&.title,
          wrong: (difference || "it is not wrong here" if step.told) }
      end

      def difference(step)
        Comparison.new(@bodies.fetch(step.compared_with), @bodies.fetch(step.id), differs: step.differs).difference
      end

      def finding(findings)
        worst = findings.max_by { |finding| finding["total_ns"].to_i } or return
        "#{worst["count"]} queries at #{worst["location"]}#{": #{worst["fix"]}" if worst["fix"]}"
      end
    end
  end
end
