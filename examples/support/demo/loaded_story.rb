# frozen_string_literal: true

module Castellan
  module Demo
    # Measures the requests per second of a story's steps, over real sockets.
    #
    # One server runs the plain steps of an application, another the steps with Castellan. Before the load,
    # the response is compared with the response of the step that it must equal. After the load, a change is
    # made and reverted, which the step must show. A published step may be wrong only after a change.
    #
    # If a goal compares two steps, they are loaded alternately, because the speed of a machine changes during
    # a demo.
    class LoadedStory
      CLIENTS = 10
      TIMEOUT = 10 # seconds; a slower response is a failure
      WARM_UP_SECONDS = 0.3 # not counted
      TURNS = 5
      MOST_REQUESTS = 10_000 # per step
      LIMIT = "limit"
      private_constant :TIMEOUT, :WARM_UP_SECONDS, :TURNS, :MOST_REQUESTS

      # @param story [Story]
      # @param examples [Hash{String, nil => Example}] by `app` of a step
      # @param budget [Budget] the seconds of load
      # @param progress [Progress]
      # @param programs [Programs]
      # @param in_turns [Hash{String => String}] by step, the later step or {LIMIT} to load alternately
      def initialize(story, examples, budget:, progress:, programs:, in_turns: {})
        @story = story
        @examples = examples
        @budget = budget
        @progress = progress
        @programs = programs
        @in_turns = in_turns
        @answers = Answers.new(story)
        @loads = {}
      end

      # @yieldparam row [Hash{Symbol => Object}] the fields of a ledger row, after each step
      # @return [void]
      def call(&block)
        @story.steps.chunk_while { |one, other| server(one) == server(other) }.each { |steps| serve(steps, &block) }
      end

      # Measures how fast the same server sends as many constant bytes as a step's response has.
      # @param id [String] a step that was replayed
      # @return [Hash{Symbol => Object}]
      def limit(id)
        bytes = @answers.body(id).bytesize
        title = "The limit: the same Puma, #{bytes} constant bytes"
        @progress.step(title) do
          loads = @loads[LIMIT] || serve_limit(bytes) { |url| load([url, {}]).first }
          { story: @story.name, step: title, id: LIMIT, response_bytes: bytes, reference: true, **loads }
        end
      end

      private

      def server(step) = [step.app, step.with_castellan, step.needs]

      def serve(steps)
        @programs.around(steps.first.needs, example_of(steps.first)) do |url|
          steps.each { |step| @progress.step(step.title) { yield row(step, url) } }
        end
      end

      # A separate server, because it may run at the same time as another one.
      def example_of(step) = @examples.fetch(step.app).with(step.with_castellan ? { "WITH_CASTELLAN" => "1" } : {})

      def serve_limit(bytes, &block)
        example = @examples.fetch(@story.steps.first.app).with("BYTES" => bytes.to_s)
        example.serve(rackup: File.expand_path("constant.ru", __dir__), &block)
      end

      def row(step, url)
        exchange = Exchange.new(url, @story.headers)
        verdict = @answers.check(step, exchange)
        headers = step.conditional ? exchange.conditions(exchange.get(step.get)) : step.headers.to_h
        bytes = step.conditional ? 0 : exchange.get(step.get, headers).body.bytesize
        measured = edited(step, exchange) { figures(step, ["#{url}#{step.get}", { **@story.headers, **headers }]) }
        @answers.check_edit(step, exchange)
        { story: @story.name, step: step.title, id: step.id, story_value: step.story_value&.fetch("requests_per_s"), finding: nil,
          code: @story.code(step), response_bytes: bytes, against: @story.step(step.compared_with)&.title, **measured,
          **verdict }
      end

      # Makes and reverts the story's change again and again during the block, if the step says so.
      def edited(step, exchange)
        return yield unless step.edits_per_second

        done = false
        editor = Thread.new { @answers.edit(exchange) { sleep 1.0 / step.edits_per_second } until done }
        yield
      ensure
        done = true
        editor&.value
      end

      # @param target [Array(String, Hash)] address and headers
      def figures(step, target)
        return @loads[step.id] if @loads.key?(step.id)

        other = @in_turns[step.id] or return load(target).first
        beside(step, other) { |second| load(target, second) }.then do |own, others|
          @loads[other] = others
          own
        end
      end

      # @yieldparam target [Array(String, Hash)] URL and headers of the step that is loaded alternately with
      #   this one
      def beside(step, other)
        return serve_limit(@answers.body(step.id).bytesize) { |url| yield [url, {}] } if other == LIMIT

        other = @story.step(other)
        example_of(other).serve { |url| yield ["#{url}#{other.get}", @story.headers] }
      end

      # @return [Array<Hash{Symbol => Numeric}>] the figures of each target
      def load(*targets)
        targets.each { |target| run(target, seconds: WARM_UP_SECONDS) }
        turns = targets.size > 1 ? TURNS : 1
        parts = targets.map { { seconds: @budget.take.fdiv(turns), max_requests: MOST_REQUESTS / turns } }
        results = Array.new(turns) { targets.zip(parts).map { |target, part| run(target, **part) } }
        results.transpose.map { |own| checked(own.reduce(:+)).to_h }
      end

      def run((url, headers), **bounds)
        LoadTest.run(url, clients: CLIENTS, headers: headers, expect: [200..299, 304], timeout: TIMEOUT, **bounds)
      end

      def checked(result)
        raise Error, "#{result.url} failed under load: #{result.reasons.keys.first}" unless result.successful.positive?

        result
      end
    end
  end
end
