# frozen_string_literal: true

require "stringio"

module Castellan
  module Doctor
    # Sends a request and reads the whole response: by `each`, or by `call` for a streaming body (Rack 3).
    #
    #   answer = Answer.to(application, request.env)
    #   answer.status   # => 200
    #   answer.error    # => the exception, even if the framework turned it into a 500
    #
    # Endless bodies are not supported.
    class Answer
      # The keys of the Rack environment in which frameworks store the exception of an error page.
      ERRORS = %w[action_dispatch.exception sinatra.error].freeze
      # The key in which Rails' host authorization stores the hosts that it refused.
      BLOCKED_HOSTS = "action_dispatch.blocked_hosts"
      private_constant :ERRORS, :BLOCKED_HOSTS

      # @return [Integer, nil] nil if the application raised
      # @return [Hash{String => String}] with names in lower case
      # @return [String] bytes
      # @return [Exception, nil]
      attr_reader :status, :headers, :body, :error

      class << self
        # @return [Answer] rescues StandardError, ScriptError, SystemStackError and SystemExit into {#error}
        def to(application, env)
          status, headers, body = checked(application.call(env))
          new(status.to_i, headers, read(body, headers), env.values_at(*ERRORS).compact.first, blocked_hosts: env[BLOCKED_HOSTS])
        rescue ScriptError, StandardError, SystemStackError, SystemExit => error
          new(nil, {}, "", error)
        end

        private

        def checked(response)
          status, headers, body = response
          return response if status && headers.respond_to?(:each) && (body.respond_to?(:each) || body.respond_to?(:call))

          raise TypeError, "the application answered with #{response.inspect}, which is no [status, headers, body] of Rack"
        end

        def read(body, headers)
          stream = StringIO.new.set_encoding(Encoding::BINARY)
          streaming = headers["rack.hijack"] || (body unless body.respond_to?(:each))
          streaming ? streaming.call(stream) : body.each { |chunk| stream.write(chunk) }
          stream.string
        ensure
          body.close if body.respond_to?(:close)
        end
      end

      def initialize(status, headers, body, error, blocked_hosts: nil)
        @blocked_hosts = blocked_hosts
        @status = status
        @headers = headers.to_h.transform_keys { |name| name.to_s.downcase }
        @body = body
        @error = error
      end

      # @return [Boolean] whether host authorization refused the request; implementations other than Rails'
      #   are recognized by the text of the body
      def host_blocked? = @blocked_hosts ? true : @body.match?(/blocked hosts?/i)

      def success? = (200..299).cover?(status)
    end
  end
end
