# frozen_string_literal: true

require "delegate"

module Castellan
  module Detect
    # Records a request of a Rack application until the end of its body.
    # For {Middleware} and {Production}.
    module WatchedRequest
      # Also for {Profile::Middleware}.
      # @param logger [#warn, nil, false] nil: `rack.logger` if it takes warnings, else `rack.errors`
      # @param env [Hash, nil] nil outside of a request
      def self.log(logger, env, text)
        # Sinatra::Base without `logging` has a logger that takes no warnings.
        logger = env&.[]("rack.logger").then { |one| one if !one.respond_to?(:warn?) || one.warn? } if logger.nil?
        return logger.warn(text) if logger

        (env ? env["rack.errors"] : $stderr)&.puts(text) if logger.nil?
      rescue StandardError
        nil # a failing logger must not change the response
      end

      private

      # Yields once, at the end of the request and outside of the recording: immediately for an Array or file
      # body, on `close` for a lazy body, and also if the application raises, throws or times out.
      # @yield [tally, use] the queries of the request, and the associations that it read if it is sampled
      #   ({Evidence})
      # @return [Array(Array, Tally)] the response, and the queries up to its return
      def watch(app, env, &over)
        Instrument.attach
        use = @evidence.begin
        use ? Recording.open(use) { record(app, env, use, &over) } : record(app, env, nil, &over)
      end

      def record(app, env, use)
        recording = Tally.recording(@slow_ns)
        over = -> { yield recording.observer, use }
        status, headers, body = Recording.resume(recording) { app.call(env) }
        answered = true
        whole?(body, env) ? over.call : body = Body.new(body, recording, over)
        [[status, headers, body], recording.observer]
      ensure
        over&.call unless answered
      end

      def whole?(body, env) = body.respond_to?(:to_path) || (body.respond_to?(:to_ary) && !LazyBody.in?(env))

      def log(env, text) = WatchedRequest.log(@logger, env, text)

      # Records the queries of a lazy body as part of its request.
      class Body < SimpleDelegator
        ASKED = %i[each call to_ary].freeze

        def initialize(body, recording, over)
          super(body)
          @recording = recording
          @over = over
        end

        def respond_to?(name, *) = ASKED.include?(name) ? __getobj__.respond_to?(name) : super

        def each(&block) = Recording.resume(@recording) { __getobj__.each(&block) }

        # Rack::ETag calls this for a lazy body of Rails, and does not close it.
        def to_ary
          Enumerator.new do |chunks|
            each { |chunk| chunks << chunk }
            done
          end
        end

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
          over = @over
          @over = nil
          over&.call
        end
      end
      private_constant :Body
    end
  end
end
