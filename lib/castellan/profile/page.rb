# frozen_string_literal: true

require "json"
require "uri"

module Castellan
  module Profile
    # Shows the recorded profiles as a Rack application. The caller must authorize the request.
    #
    #   page = Castellan::Profile::Page.new(store: results, path: "/castellan")
    #   page.call(env)   # => [200, {"content-type" => "text/html; charset=utf-8", …}, ["<!DOCTYPE html>…"]]
    #
    # | below the path | response |
    # |---|---|
    # | nothing | the latest requests, filtered by `?endpoint=` and `?status=` |
    # | `/latest` | only the table of requests, with an ETag, for polling |
    # | `/requests.json` | the latest requests as JSON |
    # | `/requests/ID` | one request; `.json` as data, `.html` as one file, `.flame.json` for speedscope |
    # | `/requests/ID.link` | a signed URL to the request, for people without authorization |
    # | `/compare?a=ID&b=ID` | two requests side by side |
    # | `/badge.js` | a script for HTML pages: `<script src="/castellan/badge.js" defer></script>` |
    # | `/assets/…`, `/speedscope/…` | style sheets, scripts, the flame graph viewer |
    #
    # Answers GET and HEAD. Only the flame graph needs JavaScript. Looks file names up in a list, so it never
    # opens a path from the client.
    class Page
      LISTED = 50
      GONE = "This profile is not there, or no longer: profiles are kept for a time, and as long as there is room."
      UNKNOWN = "There is no such page."
      CHOOSE = "A comparison needs two profiles that are there: choose them in the list of the latest requests."
      REQUEST = %r{\A/requests/(?<id>[\w-]{1,64})(?:\.(?<format>json|html|flame\.json|link))?\z}
      NEWEST = /\A"(?<number>[1-9]\d{0,15})\.(?<id>[\w-]{1,64})"\z/
      private_constant :LISTED, :GONE, :UNKNOWN, :CHOOSE, :REQUEST, :NEWEST

      # Builds a path for links and redirects. SCRIPT_NAME and PATH_INFO are client input, and `//host` would
      # redirect to another host.
      # @param path [String] any bytes
      # @return [String] a path that starts with one slash; bytes that a URL does not allow are
      #   percent-encoded
      def self.local(path)
        "/#{path.b.sub(%r{\A/+}, "")}".gsub(/[^!-~]|["<>\\^`{|}]/n) { |byte| format("%%%02X", byte.ord) }.force_encoding(Encoding::UTF_8)
      end

      # @param store [Results]
      # @param path [String] the path of the page, below the mount point of the application
      # @param share [#call, nil] receives the Rack environment and a path, returns a signed URL; nil without
      #   tokens
      # @param evidence [#call, nil] returns findings of many requests, see {Detect::Evidence}
      def initialize(store:, path: "/castellan", share: nil, evidence: nil)
        @results = store
        @evidence = evidence
        @path = path.chomp("/")
        @share = share
        freeze
      end

      # @param env [Hash] Rack environment
      # @return [Array] Rack response
      def call(env)
        return not_allowed unless %w[GET HEAD].include?(env["REQUEST_METHOD"])

        status, headers, body = answer(Visit.new(env, @path))
        headers = headers.merge("content-length" => body.bytesize.to_s) unless status == 304
        [status, headers, env["REQUEST_METHOD"] == "HEAD" || status == 304 ? [] : [body]]
      end

      Visit = Struct.new(:env, :path) do
        # @return [String] the path below the path of the page
        def place = env["PATH_INFO"].to_s.scrub.delete_prefix(path).chomp("/")

        # @return [String] the path of the page as the browser sees it
        def root = Page.local("#{env["SCRIPT_NAME"].to_s.b}#{path}").chomp("/")

        # @return [String, nil] a query parameter; nil if it is empty
        def [](name)
          @query ||= URI.decode_www_form(env["QUERY_STRING"].to_s.scrub).to_h
          value = @query[name].to_s
          value unless value.empty?
        rescue ArgumentError
          nil # an invalid query string counts as empty
        end

        # @return [String] scheme and host of the application
        def origin = "#{env["rack.url_scheme"] || "http"}://#{host}"

        # @return [Hash{Symbol => String, nil}] the filter of the list
        def filter = { endpoint: self["endpoint"], status: self["status"] }

        # @return [String] If-None-Match of the request, or ""
        def validator = env["HTTP_IF_NONE_MATCH"].to_s.scrub

        private

        def host = env["HTTP_HOST"] || "#{env["SERVER_NAME"]}:#{env["SERVER_PORT"]}"
      end
      private_constant :Visit

      private

      def answer(visit)
        case place = visit.place
        when "" then html(list(visit))
        when "/latest" then latest(visit)
        when "/requests.json" then json(summaries(visit).map(&:to_h))
        when "/compare" then compare(visit)
        when "/badge.js" then asset(Assets.find("badge.js"))
        when REQUEST then request(visit, Regexp.last_match[:id], Regexp.last_match[:format])
        else asset(Assets.find(place.delete_prefix("/assets/").delete_prefix("/"))) || missing(visit, UNKNOWN)
        end
      end

      def list(visit) = index(visit, summaries(visit), endpoints: @results.endpoints, evidence: @evidence ? @evidence.call : []).to_s

      def index(visit, summaries, **others)
        IndexView.new(summaries, filter: visit.filter, limit: LISTED, root: visit.root, **others)
      end

      def summaries(visit) = @results.latest(limit: LISTED, **visit.filter)

      def latest(visit)
        return [304, Policy::PAGE.merge("etag" => visit.validator), ""] if unchanged?(visit)

        found = summaries(visit)
        headers = { "content-type" => "text/html; charset=utf-8", "etag" => "\"#{found.first&.number.to_i}.#{found.first&.id}\"" }
        [200, Policy::PAGE.merge(headers), index(visit, found).rows]
      end

      # Browsers poll every two seconds while this process is being measured, so this reads one summary
      # instead of 500. It compares the id as well as the number, because an emptied store counts from 1
      # again.
      def unchanged?(visit)
        return false unless (known = NEWEST.match(visit.validator))

        newest = @results.latest(limit: 1, after: known[:number].to_i - 1, **visit.filter).first
        newest&.id == known[:id]
      end

      def request(visit, id, format)
        result = @results.find(id) or return missing(visit, GONE)
        case format
        when "json" then json(result.to_h)
        when "flame.json" then result.flame ? json(result.flame) : missing(visit, GONE)
        when "html" then export(result, visit)
        when "link" then link(visit, id) || missing(visit, UNKNOWN)
        else html(result_view(result, visit).to_s)
        end
      end

      def result_view(result, visit)
        ResultView.new(result, origin: visit.origin, others: @results.latest(limit: LISTED), shared: !@share.nil?, root: visit.root)
      end

      # The browser fetches the link when the user shares it, so that the page contains no token.
      def link(visit, id)
        link = @share&.call(visit.env, "#{visit.root}/requests/#{id}")
        [200, Policy::PAGE.merge("content-type" => "text/plain"), link] if link
      end

      def export(result, visit)
        file = Export.new(result, origin: visit.origin)
        [200, file.headers.merge("content-disposition" => "attachment; filename=\"castellan-#{result.id}.html\""), file.to_s]
      end

      def compare(visit)
        before, after = %w[a b].map { |side| visit[side] && @results.find(visit[side]) }
        return missing(visit, CHOOSE) unless before && after

        html(Comparison.new(before, after, root: visit.root).to_s)
      end

      def asset(asset)
        return unless asset

        policy = asset.speedscope? ? Policy::SPEEDSCOPE : Policy::PAGE
        [200, policy.merge("content-type" => asset.content_type), asset.content]
      end

      def html(body, status = 200) = [status, Policy::PAGE.merge("content-type" => "text/html; charset=utf-8"), body]

      def json(value) = [200, Policy::PAGE.merge("content-type" => "application/json"), JSON.generate(value)]

      def missing(visit, text) = html(View.new(root: visit.root).missing(text), 404)

      def not_allowed
        [405, Policy::PAGE.merge("allow" => "GET, HEAD", "content-type" => "text/plain"), ["GET and HEAD only"]]
      end
    end
  end
end

require_relative "page/markup"
require_relative "page/html_template"
require_relative "page/policy"
require_relative "page/assets"
require_relative "page/query_group"
require_relative "page/finding_group"
require_relative "page/timeline"
require_relative "page/headline"
require_relative "page/curl"
require_relative "page/view"
require_relative "page/index_view"
require_relative "page/result_view"
require_relative "page/comparison"
require_relative "page/export"
