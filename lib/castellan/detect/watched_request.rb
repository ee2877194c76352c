# frozen_string_literal: true

require "delegate"

module Castellan
  module Detect
    # Runs one request of a Rack application in a recording that lasts to the end of its body.
    #
    #   recording = Tally.recording(nil)
    #   WatchedRequest.call(app, env, recording) { puts Verdict.new(recording.observer).findings }   # => the response of the application
    #
    # Calls the block once, at the end of the request and after the recording: immediately for an Array or
    # file body, on `close` for a lazy body, and also if the application raises, throws or times out.
    module WatchedRequest
      class << self
        # @param app [#call]
        # @param env [Hash] the Rack environment
        # @param recording [Recording]
        # @yield called at the end of the request
        # @return [Array] the response
        def call(app, env, recording, &over)
          answered = false
          response = Recording.resume(recording) { app.call(env) }
          answered = true
          answer(response, recording, &over)
        ensure
          over.call unless answered
        end

        # Finishes {call} after the application returned.
        def answer(response, recording, &over)
          status, headers, body = response
          return [status, headers, Body.new(body, recording, &over)] unless complete?(body)

          over.call
          response
        end

        private

        # Whether the whole body is available.
        def complete?(body) = body.respond_to?(:to_ary) || body.respond_to?(:to_path)
      end

      # Wraps a lazy body, so that its queries belong to its request.
      class Body < SimpleDelegator
        ASKED = %i[each call to_ary to_path].freeze

        def initialize(body, recording, &closed)
          super(body)
          @recording = recording
          @closed = closed
        end

        # Responds to these methods only if the wrapped body does.
        def respond_to?(name, *)
          ASKED.include?(name) ? __getobj__.respond_to?(name) : super
        end

        def each(&block) = Recording.resume(@recording) { __getobj__.each(&block) }

        def call(stream)
          Recording.resume(@recording) { __getobj__.call(stream) }
        ensure
          done
        end

        def close
          Recording.resume(@recording) { __getobj__.close if __getobj__.respond_to?(:close) }
        ensure
          done
        end

        private

        def done
          closed = @closed
          @closed = nil
          closed&.call
        end
      end
      private_constant :Body
    end
  end
end
