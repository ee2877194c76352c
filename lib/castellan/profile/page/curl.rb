# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # Formats a request as a curl command. {#remarks} lists secrets that are not recorded.
      #
      #   Curl.new(result, origin: "http://localhost:3000").to_s # => "curl 'http://localhost:3000/users?role=1' …"
      #   Curl.new(result, origin: origin, depth: "memory").to_s
      #
      # Quotes all values for a POSIX shell, because paths and headers are untrusted input.
      class Curl
        # Headers that curl sets itself, or that belong to one connection.
        LEFT_OUT = %w[host content-length connection accept-encoding castellan-profile].freeze
        private_constant :LEFT_OUT

        # @param result [Result]
        # @param origin [String] e.g. "http://localhost:3000"
        # @param depth [String, nil] the depth for profiling the request again
        def initialize(result, origin:, depth: nil)
          @result = result
          @origin = origin
          @depth = depth
        end

        def to_s = ["curl #{quoted("#{@origin}#{target}")}", *literally, *verb, *headers].join(" \\\n  ")

        # @return [Array<String>] what to add to the command
        def remarks
          ["Authorization and cookies are not recorded: add what the request needs.",
           ("Values on the filter list are [FILTERED]: fill them in." if @result.query.to_s.include?("[FILTERED]")),
           ("The body of the request is not recorded: add it with --data." unless %w[GET HEAD].include?(@result.method))].compact
        end

        private

        # Encodes unsafe bytes again, because some servers decode the path.
        def target
          text = "#{@result.path}#{"?#{@result.query}" unless @result.query.to_s.empty?}"
          text.b.gsub(/[^!-~]|#/n) { |byte| format("%%%02X", byte.ord) }
        end

        def verb
          case @result.method
          when "GET" then nil
          when "HEAD" then "--head"
          else "-X #{quoted(@result.method)}"
          end
        end

        def headers
          kept = @result.headers.reject { |name, _| LEFT_OUT.include?(name.to_s.downcase) }
          kept = kept.merge("castellan-profile" => @depth) if @depth
          kept.map { |name, value| "-H #{quoted(value.to_s.empty? ? "#{name};" : "#{name}: #{value}")}" } # curl drops "name: "
        end

        # These options stop curl from expanding `[` and `{`, as in `page[size]=10`, and from resolving
        # `/../`.
        def literally
          [("--globoff" if target.match?(/[\[\]{}]/)), ("--path-as-is" if target.match?(%r{/(?:\.|%2e){1,2}(?:[/?]|\z)}i))].compact
        end

        def quoted(text) = "'#{text.to_s.gsub("'") { "'\\''" }}'"
      end
    end
  end
end
