# frozen_string_literal: true

require "digest/sha2"
require "json"
require "rack/utils"

module Castellan
  module Serve
    # Shows documents as HTML, with links and a form to filter and sort, if a browser prefers it.
    #
    #   Castellan.app {
    #     pages title: "Library"
    #     resource PostResource
    #   }
    #
    # A page contains only the document that the same request gets as JSON:API. It has no scripts, and its
    # Content-Security-Policy allows none. Frozen.
    class Pages
      HTML = "text/html"
      ROOT = ["", "/"].freeze
      # Drops the empty fields of a form, because `filter[title]=` would search for empty titles.
      EMPTY = /=\z/
      # The document is read, so it must come, and uncompressed.
      REMOVED = %w[HTTP_IF_NONE_MATCH HTTP_IF_MATCH HTTP_ACCEPT_ENCODING].freeze
      ACCEPTED = "#{HTTP::Negotiation::JSON_API}, */*;q=0.1".freeze # a resource may have another format
      POLICY = "default-src 'none'; style-src 'sha256-%s'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
      private_constant :HTML, :ROOT, :EMPTY, :REMOVED, :ACCEPTED, :POLICY

      # @param title [String] the name of the API
      def initialize(title: "API")
        @title = title
        @negotiation = HTTP::Negotiation.new(types: [HTTP::Negotiation::JSON_API, HTML])
        @headers = { "content-type" => "text/html; charset=utf-8", "x-content-type-options" => "nosniff",
                     "referrer-policy" => "same-origin",
                     "content-security-policy" => format(POLICY, Digest::SHA256.base64digest(DocumentPage::STYLE)) }.freeze
        freeze
      end

      # @return [Boolean] whether the client prefers HTML
      def wanted?(env)
        App::ALLOWED.include?(env["REQUEST_METHOD"]) && env["HTTP_ACCEPT"].to_s.include?(HTML) &&
          @negotiation.response_type(env["HTTP_ACCEPT"]) == HTML
      end

      # @return [Boolean] whether this is the path of the start page, which lists the collections
      def at?(path)
        ROOT.include?(path)
      end

      # @param env [Hash] Rack's environment
      # @param app [App]
      # @param prefix [String, nil] the base of links
      # @yieldparam env [Hash] the environment of the same request for JSON:API
      # @yieldreturn [Array] Rack response
      # @return [Array] Rack response with the page
      def call(env, app, prefix)
        query = env["QUERY_STRING"].to_s.split("&").grep_v(EMPTY).join("&")
        asked = env.merge("HTTP_ACCEPT" => ACCEPTED, "QUERY_STRING" => query).except(*REMOVED)
        status, headers, body = response = yield(asked)
        return response unless headers["content-type"]&.start_with?(HTTP::Negotiation::JSON_API) # a profile may follow

        page = DocumentPage.new(@title, document(body), status, asked, app, prefix).to_html
        kept = headers.slice("www-authenticate", "retry-after", "cache-control", "allow")
        # A page has no tags, so a purge would not reach it.
        kept.update(CacheFields::ALWAYS_ASK.shared) if app.purge && kept["cache-control"]&.start_with?("public")
        [status, { **kept, **@headers, "vary" => "accept, authorization", "content-length" => page.bytesize.to_s }, [page]]
      end

      # @param env [Hash] Rack's environment
      # @param links [Hash{String => String}] the collections, by path
      # @return [Array] Rack response with a document that links to the collections
      def start(env, links)
        return ErrorDocument.not_allowed unless App::ALLOWED.include?(env["REQUEST_METHOD"])

        body = JSON.generate("meta" => {}, "links" => links.transform_keys { |path| path.delete_prefix("/") })
        headers = { "content-type" => HTTP::Negotiation::JSON_API, "content-length" => body.bytesize.to_s, "vary" => "accept" }
        [200, { **headers, "cache-control" => "no-cache" }, [body]]
      end

      private

      def document(body)
        text = +""
        body.each { |part| text << part }
        JSON.parse(text, allow_duplicate_key: true) # a column of the type json may have one
      end
    end
  end
end
