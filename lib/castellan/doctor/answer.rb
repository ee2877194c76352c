# frozen_string_literal: true

module Castellan
  module Doctor
    # What the application answered, read to its end as a server reads it: an enumerable body by `each`, a streaming one by `call`
    # (Rack 3), and closed in the end.
    #
    #   answer = Answer.to(application, request.env)
    #   answer.status   # => 200
    #   answer.error    # => the exception, when the application raised, or when its framework says what it has made a 500 of
    #
    # Not for bodies without an end: it waits for the end.
    class Answer
      # Where frameworks leave the exception that they answer with an error page.
      ERRORS = %w[action_dispatch.exception sinatra.error].freeze

      # A connection for a body that writes by itself.
      class Stream
        # @return [String] the bytes that were written
        attr_reader :bytes

        def initialize
          @bytes = String.new
        end

        def write(*chunks)
          chunks.sum { |chunk| @bytes.concat(chunk.to_s.b) && chunk.to_s.bytesize }
        end

        def <<(chunk)
          write(chunk)
          self
        end

        # @return [nil] the client has sent nothing more
        def read(*) = nil

        def flush = self

        def close
          @closed = true
          nil
        end
        alias close_read close
        alias close_write close

        # @return [Boolean]
        def closed? = @closed ? true : false
      end
      # Where Rails' host check leaves what it has refused.
      BLOCKED_HOSTS = "action_dispatch.blocked_hosts"
      private_constant :ERRORS, :BLOCKED_HOSTS, :Stream

      # @return [Integer, nil] nil when the application raised
      # @return [Hash{String => String}] names in lower case
      # @return [String] bytes
      # @return [Exception, nil]
      attr_reader :status, :headers, :body, :error

      # @param application [#call]
      # @param env [Hash]
      # @return [Answer] also when the application raised, called itself without end, or wanted to end the process
      def self.to(application, env)
        status, headers, body = checked(application.call(env))
        new(status.to_i, headers, read(body, headers), env.values_at(*ERRORS).compact.first, blocked_hosts: env[BLOCKED_HOSTS])
      rescue ScriptError, StandardError, SystemStackError, SystemExit => error
        new(nil, {}, "", error)
      end

      def self.checked(response)
        status, headers, body = response if response.respond_to?(:to_ary)
        return response if status && headers.respond_to?(:each) && (body.respond_to?(:each) || body.respond_to?(:call))

        raise TypeError, "the application answered with #{response.inspect}, which is no [status, headers, body] of Rack"
      end
      private_class_method :checked

      def self.read(body, headers)
        stream = Stream.new
        streaming = headers["rack.hijack"] || (body unless body.respond_to?(:each))
        streaming ? streaming.call(stream) : body.each { |chunk| stream << chunk }
        stream.bytes
      ensure
        body.close if body.respond_to?(:close)
      end
      private_class_method :read

      def initialize(status, headers, body, error, blocked_hosts: nil)
        @blocked_hosts = blocked_hosts
        @status = status
        @headers = headers.to_h.transform_keys { |name| name.to_s.downcase }
        @body = body
        @error = error
      end

      # @return [Boolean] whether a host check refused the request; other ones than Rails' say so in the body
      def host_blocked? = @blocked_hosts ? true : @body.match?(/blocked hosts?/i)

      # @return [Boolean]
      def success? = (200..299).cover?(status)
    end
  end
end
