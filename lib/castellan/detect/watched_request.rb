# frozen_string_literal: true

require "delegate"

module Castellan
  module Detect
    # One request of a Rack application under a recording, from the call to the end of its body.
    #
    #   recording = Tally.recording(nil)
    #   WatchedRequest.call(app, env, recording) { puts Verdict.new(recording.observer).findings }   # => the response of the application
    #
    # The block runs once, when the request is over: at once where all of the body is there, when the body is closed where it is made
    # while it is sent, and also when the application raises, throws or runs out of time. By then the recording is closed.
    module WatchedRequest
      class << self
        # @param recording [Recording]
        # @yield when nothing more can come of this request
        # @return [Array] the response
        def call(app, env, recording, &over)
          answered = false
          response = Recording.resume(recording) { app.call(env) }
          answered = true
          answer(response, recording, &over)
        ensure
          over.call unless answered
        end

        # The end of {call}, where the application has returned.
        def answer(response, recording, &over)
          status, headers, body = response
          return [status, headers, Body.new(body, recording, &over)] unless complete?(body)

          over.call
          response
        end

        private

        # Whether all of the body is there.
        def complete?(body) = body.respond_to?(:to_ary) || body.respond_to?(:to_path)
      end

      # A body that is made while it is sent; what it asks the database belongs to its request.
      class Body < SimpleDelegator
        ASKED = %i[each call to_ary to_path].freeze

        def initialize(body, recording, &closed)
          super(body)
          @recording = recording
          @closed = closed
        end

        # The methods below are there only as far as the body has them.
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
