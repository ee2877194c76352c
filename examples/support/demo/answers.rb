# frozen_string_literal: true

require "zlib"

module Castellan
  module Demo
    # Checks what the steps of a story answer, before and after a change.
    #
    #   answers = Answers.new(story)
    #   answers.check(step, exchange)        # => {}, or { wrong: "…" } for a step as it was published
    #   answers.check_edit(step, exchange)   # raises if the step does not show the story's change
    class Answers
      # @param story [Story]
      def initialize(story)
        @story = story
        @bodies = {}
      end

      # @param id [String] a step that was checked
      # @return [String] its body
      def body(id) = @bodies.fetch(id)

      # Compares the answer with that of the step it must equal, and sends the step's writes.
      # @param step [Story::Step]
      # @param exchange [Exchange]
      # @return [Hash{Symbol => String}] how a published step is wrong
      # @raise [Error] if a corrected step is wrong
      def check(step, exchange)
        @bodies[step.id] = content(answer(step, exchange))
        return { wrong: wrong(step, exchange) } if step.told

        difference = difference(step, body(step.id), exchange)
        raise Error, "#{@story.name}: #{step.id} must send what #{step.compared_with} sends, but #{difference}" if difference

        write(step, exchange) if step.writes
        {}
      end

      # Makes the change of the story and reverts it.
      # @param exchange [Exchange]
      # @yield between the two
      def edit(exchange)
        exchange.change(@story.edit)
        yield if block_given?
      ensure
        exchange.change(@story.edit, @story.edit.fetch("restore"))
      end

      # Makes the change of the story, and reverts it: the answer must show both, at most `late` seconds after.
      # @param step [Story::Step]
      # @param exchange [Exchange]
      # @raise [Error] if an answer is stale
      def check_edit(step, exchange)
        return if @story.edit.nil? || step.told || step.compared_with.nil?

        before = answer(step, exchange)
        expected = expected(step, exchange).first
        edit(exchange) do
          raise Error, "#{@story.name}: the edit changes nothing in #{step.id}" if expected(step, exchange).first == expected

          shown(step, exchange, before)
        end
        shown(step, exchange, before)
      end

      private

      # As the load asks: in gzip, if that is what the step is about.
      def answer(step, exchange, headers = {}) = exchange.get(step.get, { **step.headers.to_h, **headers })

      def content(response)
        response["content-encoding"] == "gzip" ? Zlib.gunzip(response.body.b) : response.body
      rescue Zlib::Error => error
        raise Error, "the answer is not gzip: #{error.message}"
      end

      def shown(step, exchange, before)
        deadline_ns = Clock.monotonic_ns + (step.late * 1_000_000_000)
        while (difference = difference(step, held(step, exchange, before), exchange))
          raise Error, "#{@story.name}: #{step.id} is stale after a change: #{difference}" if Clock.monotonic_ns > deadline_ns

          sleep 0.02
        end
      end

      # The body that a client shows: after a 304, the one that it has.
      def held(step, exchange, before)
        again = answer(step, exchange, step.conditional ? exchange.conditions(before) : {})
        content(again.is_a?(Net::HTTPNotModified) ? before : again)
      end

      # The last request undoes the first, so that the page does not change.
      def write(step, exchange)
        exchange.write(step.writes)
        difference = Comparison.new(body(step.id), exchange.get(step.get).body, differs: []).difference or return
        raise Error, "#{@story.name}: the writes of #{step.id} changed its page: #{difference}"
      end

      def wrong(step, exchange)
        found = step.wrong_after ? wrong_after(step, exchange) : difference(step, body(step.id), exchange)
        found || "it is not wrong here"
      end

      # @return [String, nil] how the body that a client still gets after a change is wrong
      def wrong_after(step, exchange)
        before = answer(step, exchange)
        exchange.change(step.wrong_after)
        difference(step, held(step, exchange, before), exchange)
      ensure
        exchange.change(step.wrong_after, step.wrong_after.fetch("restore"))
      end

      def difference(step, sent, exchange)
        expected, differs = expected(step, exchange)
        Comparison.new(expected, sent, differs: differs).difference if expected
      end

      # Requests the step without Castellan again if the same server has it, because the data may have changed.
      # @return [Array(String, Array<String>), nil] its body, and the patterns of what may differ
      def expected(step, exchange)
        reference, differs = @story.without_castellan(step)
        [reference.app == step.app ? exchange.get(reference.get).body : body(reference.id), differs] if reference
      end
    end
  end
end
