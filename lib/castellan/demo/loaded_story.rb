# frozen_string_literal: true

module Castellan
  module Demo
    # A story whose steps are told by how many requests a server answers: each is put under load over real sockets.
    #
    # One server runs for the plain steps of an application and one for those with Castellan. Before the load, the answer is
    # compared with that of the step it must equal; a step as told may be wrong only after a change, which is then made, asked
    # about, and taken back.
    class LoadedStory
      CLIENTS = 10
      TIMEOUT = 10 # seconds; an answer that takes longer is counted as failed
      WARM_UP_SECONDS = 0.3 # thrown away, as the first request is elsewhere
      private_constant :TIMEOUT, :WARM_UP_SECONDS

      # @param story [Story]
      # @param examples [Hash{String, nil => Example}] by the step's `app`
      # @param budget [Budget] of seconds of load
      # @param progress [Progress]
      def initialize(story, examples, budget:, progress:)
        @story = story
        @examples = examples
        @budget = budget
        @progress = progress
        @bodies = {}
      end

      # @yieldparam row [Hash{Symbol => Object}] fields of the ledger's row, as soon as its step is measured
      # @return [void]
      def call(&block)
        @story.steps.chunk_while { |one, other| [one.app, one.with_castellan] == [other.app, other.with_castellan] }
              .each { |steps| serve(steps, &block) }
      end

      # How fast the same server sends as many bytes as a step's answer has, without making them.
      # @param id [String] of a step that was replayed
      # @return [Hash{Symbol => Object}]
      def limit(id)
        bytes = @bodies.fetch(id).bytesize
        example = @examples.fetch(@story.step(id).app).with("BYTES" => bytes.to_s)
        example.serve(rackup: File.expand_path("constant.ru", __dir__)) do |url|
          title = "The limit: the same Puma, #{bytes} constant bytes"
          @progress.step(title) do
            { story: @story.name, step: title, id: "limit", response_bytes: bytes, reference: true, **load(url, {}) }
          end
        end
      end

      private

      def serve(steps)
        first = steps.first
        example = @examples.fetch(first.app)
        example = example.with("WITH_CASTELLAN" => "1") if first.with_castellan
        example.serve { |url| steps.each { |step| @progress.step(step.title) { yield row(step, url) } } }
      end

      def row(step, url)
        exchange = Exchange.new(url, @story.headers)
        answer = exchange.get(step.get)
        @bodies[step.id] = answer.body
        verdict = verdict(step, exchange)
        headers = step.conditional ? exchange.conditions(exchange.get(step.get)) : {}
        { story: @story.name, step: step.title, id: step.id, story_value: step.story_value&.fetch("requests_per_s"), finding: nil,
          code: @story.code(step), response_bytes: step.conditional ? 0 : answer.body.bytesize,
          **load("#{url}#{step.get}", headers), **verdict }
      end

      def load(url, headers)
        options = { clients: CLIENTS, headers: { **@story.headers, **headers }, expect: [200..299, 304], timeout: TIMEOUT }
        LoadTest.run(url, seconds: WARM_UP_SECONDS, **options)
        result = LoadTest.run(url, seconds: @budget.take, **options)
        raise Error, "#{url} failed under load: #{result.reasons.keys.first}" unless result.successful.positive?

        result.to_h
      end

      def verdict(step, exchange)
        return { wrong: wrong(step, exchange) } if step.told

        difference = step.compared_with && difference(step, @bodies.fetch(step.id), exchange)
        raise Error, "#{@story.name}: #{step.id} must send what #{step.compared_with} sends, but #{difference}" if difference

        {}
      end

      def wrong(step, exchange)
        found = step.wrong_after ? wrong_after(step, exchange) : difference(step, @bodies.fetch(step.id), exchange)
        found || "it is not wrong here"
      end

      # What a client holds after a change that the step does not see.
      def wrong_after(step, exchange)
        before = exchange.get(step.get)
        exchange.change(step.wrong_after)
        again = exchange.get(step.get, step.conditional ? exchange.conditions(before) : {})
        held = again.is_a?(Net::HTTPNotModified) ? before.body : again.body
        difference(step, held, exchange)
      ensure
        exchange.change(step.wrong_after, step.wrong_after.fetch("restore"))
      end

      # The step compared with is asked anew where the same server answers it, because a change may lie between.
      def difference(step, body, exchange)
        reference = @story.step(step.compared_with)
        expected = reference.app == step.app && !reference.with_castellan ? exchange.get(reference.get).body : @bodies.fetch(reference.id)
        Comparison.new(expected, body, differs: step.differs).difference
      end
    end
  end
end
