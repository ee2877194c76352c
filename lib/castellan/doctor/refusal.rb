# frozen_string_literal: true

require "cgi/escape"

module Castellan
  module Doctor
    # Explains why a response is not measured and what to do. Only 2xx responses are measured.
    #
    #   Refusal.of(answer, request)  # => "the application answered 401, which is not measured: …"
    #   Refusal.reason(answer, request) # => "it requires authentication; pass -H …"
    #   Refusal.error(error)         # => "KeyError: key not found: \"PAYMENT_KEY\"\n    from config.ru:2:in …"
    class Refusal
      NO_TABLE = /no such table|could not find table|undefinedtable|relation "[^"]*" does not exist/i
      MARKUP = %r{<(style|script|title)\b.*?</\1>|<[^>]+>}m
      # Prefixes of Castellan's own backtrace lines. Absolute paths, because an application may have a folder
      # lib/castellan.
      OWN = [__FILE__.delete_suffix("doctor/refusal.rb"), File.expand_path("../../../exe/", __dir__), Gem.bindir].freeze
      private_constant :NO_TABLE, :MARKUP, :OWN

      # @return [String, nil] nil for a 2xx response
      def self.of(answer, request)
        new(answer, request).to_s unless answer.success?
      end

      # @return [String] why the response is none of the application's data, for `castellan cache explain` as well
      def self.reason(answer, request) = new(answer, request).reason

      # @return [String] the class, the beginning of the message, and the first lines in the application
      def self.error(error)
        lines = error.backtrace.to_a.reject { |line| line.start_with?(*OWN) }
        own = lines.select { |line| own?(line) }
        places = (own.any? ? own : lines).first(3).map { |line| "\n    from #{line.delete_prefix("#{Dir.pwd}/")}" }
        "#{error.class}: #{error.message.to_s.scrub.lines.first(12).join.strip}#{places.join}"
      end

      # The lines of a rackup file have its path as it was passed to Rack, such as config.ru.
      private_class_method def self.own?(line)
        (line.start_with?("#{Dir.pwd}/") || !(line.start_with?("<", "(") || File.absolute_path?(line))) && !line.match?(%r{(?:\A|/)vendor/})
      end

      def initialize(answer, request)
        @answer = answer
        @request = request
      end

      def to_s
        return "#{@request}: the application raised an error, so there is nothing to measure: #{error}" unless @answer.status

        "#{@request}: the application answered #{@answer.status}, which is not measured: #{reason}"
      end

      def reason
        case @answer.status
        when 304 then "the client has the current version; leave out If-None-Match and If-Modified-Since"
        when 300..399 then redirect(@answer.headers["location"].to_s)
        when 401 then "it requires authentication; pass -H 'Authorization: …', or to the doctor --curl with what the browser copies"
        when 403 then forbidden
        when 404 then "there is nothing at this path in this environment#{message}"
        when 406, 415 then "it does not offer this media type; request another, -H 'Accept: application/json'#{message}"
        when 429 then "it limits the rate of requests#{message}; raise the limit for this run"
        when 500..599 then "it failed#{@answer.error ? ": #{error}" : "#{message}; look into its log, or try --env development"}"
        else "it does not accept this request#{message}"
        end
      end

      private

      def forbidden
        return "this user is not permitted to see it#{message}" unless @answer.host_blocked?

        "its host check (config.hosts) refuses the host #{@request.host}; use one that it allows: https://app.example#{@request.path}"
      end

      def redirect(location)
        if location == @request.url.sub(/\Ahttp:/i, "https:")
          "it redirects to https (force_ssl); pass -H 'X-Forwarded-Proto: https'"
        else
          "it redirects to #{location}; request that, or, if it is the sign-in page, pass -H 'Cookie: …' or -H 'Authorization: …'"
        end
      end

      def error = "#{Refusal.error(@answer.error)}#{missing_tables if @answer.error.message.to_s.scrub.match?(NO_TABLE)}"

      def missing_tables
        "\nThe database of this environment is not prepared. In Rails: RAILS_ENV=production bin/rails db:prepare; " \
          "or examine another one: --env development."
      end

      def message
        body = @answer.body.dup.force_encoding(Encoding::UTF_8).scrub
        plain = body.gsub(MARKUP, " ")
        text = (plain == body ? body : CGI.unescapeHTML(plain)).gsub(/\s+/, " ").strip
        text.empty? ? "" : " (the body: #{text[0, 200]})"
      end
    end
  end
end
