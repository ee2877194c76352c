# frozen_string_literal: true

require "json"
require_relative "requests"

module Castellan
  class Purge
    # Refreshes documents in nginx or HAProxy, which cannot purge by tags.
    #
    #   Refresh.new("http://127.0.0.1:8080").purge(%w[posts/7])
    #
    # Requests the URLs whose documents have one of the tags, with `Cache-Control: no-cache`. With the
    # configuration that `castellan proxy nginx` or `castellan proxy haproxy` prints, the proxy then forwards
    # the request to the application and replaces the old document. If it cannot store the response, because
    # the document is missing or private or the application fails, a PURGE removes the old document. The table
    # `castellan_urls` keeps the URLs.
    class Refresh
      LONGEST = 2_500 # bytes of a URL and its fields: an index of PostgreSQL takes 2,704
      URL = %r{\A/[\x21-\x22\x24-\x7e]*\z}n # neither in the absolute form nor with a fragment
      NEGOTIATED = %w[accept accept-encoding].freeze # in the key of nginx, also without Vary
      FRESH = { "cache-control" => "no-cache", "castellan-refresh" => "1" }.freeze
      MOST = 100 # documents that a purge requests again; it only removes the others, because clients can invent URLs
      LONGEST_SECONDS = 1 # for these requests; until then clients get the old documents
      SMALL = 900_000 # bytes; HAProxy keeps the old document if the new one has more than a million
      UNSTORED = %w[set-cookie cdn-cache-control].freeze # nginx may not store the second
      private_constant :LONGEST, :URL, :NEGOTIATED, :FRESH, :MOST, :LONGEST_SECONDS, :SMALL, :UNSTORED

      # @param url [String] of the proxy, as seen from this process
      # @param timeout [Numeric] seconds for each request; at most one waits for an application that hangs
      # @raise [ConfigurationError] if an option is invalid
      def initialize(url, timeout: 5)
        @requests = Requests.new(url, seconds: timeout)
      end

      # Called by {Purge}.
      # @param outbox [Outbox]
      def keep_in(outbox)
        @outbox = outbox
      end

      # @param env [Hash] Rack's environment
      # @param vary [String] the header field Vary of the response
      # @return [Boolean] whether the URL of this request can be stored
      def notes?(env, vary)
        path = path(env)
        fields = fields(env, vary)
        path.match?(URL) && fields.key?("host") && fields.values.all?(&:ascii_only?) &&
          path.bytesize + JSON.generate(fields).bytesize <= LONGEST
      end

      # Stores the URL of a document that the proxy may store.
      # @param tags [Array<String>]
      # @param env [Hash] Rack's environment
      # @param vary [String] the header field Vary of the response
      def note(tags, env, vary)
        @outbox.remember(tags, path(env), JSON.generate(fields(env, vary)))
      end

      # @param tags [Array<String>]
      # @raise [Error] if the proxy fails
      def purge(tags)
        @outbox.forget_urls
        documents = @outbox.urls(tags).map { |path, fields| [path, JSON.parse(fields)] }
        fresh = documents.first(MOST).map { |path, fields| request("GET", path, { **fields, **FRESH }) }
        responses = @requests.try(fresh, within: LONGEST_SECONDS)
        removed = documents.zip(responses).reject { |_, response| stored?(response) }.map(&:first)
        @requests.call(removed.map { |path, fields| request("PURGE", path, fields) })
      end

      private

      # @return [Boolean] whether both proxies have certainly stored the response in the place of the old one
      def stored?(response)
        return false unless response&.code == "200" && response.body.bytesize < SMALL

        control = response["cache-control"].to_s
        control.match?(/(s-maxage|max-age)=[1-9]/) && !control.match?(/private|no-|age=0/) &&
          UNSTORED.none? { |name| response.key?(name) } && (response["vary"].to_s.downcase.split(/\s*,\s*/) - NEGOTIATED).empty?
      end

      # Without the Accept and Accept-Encoding that Net::HTTP adds, because the document may vary by them.
      def request(method, path, fields)
        request = Net::HTTPGenericRequest.new(method, false, true, path)
        NEGOTIATED.each { |name| request.delete(name) }
        fields.each { |name, value| request[name] = value }
        request
      end

      # @return [String] the proxy's key: the path as the client wrote it, if the server sets REQUEST_URI
      def path(env)
        written = env["REQUEST_URI"] and return written.b
        path = "#{env["SCRIPT_NAME"]}#{env["PATH_INFO"]}".b
        env["QUERY_STRING"].to_s.empty? ? path : path << "?" << env["QUERY_STRING"].b
      end

      def fields(env, vary)
        names = vary.downcase.split(/\s*,\s*/) | NEGOTIATED
        fields = names.sort.to_h { |name| [name, env["HTTP_#{name.upcase.tr("-", "_")}"]] }
        fields["host"] = env["HTTP_HOST"]
        fields.compact
      end
    end
  end
end
