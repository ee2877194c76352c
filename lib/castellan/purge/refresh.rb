# frozen_string_literal: true

require "json"
require_relative "requests"

module Castellan
  class Purge
    # Replaces documents in nginx or HAProxy, which cannot purge by tags: asks them for each URL whose document has one of the tags,
    # with `Cache-Control: no-cache`. The configuration that `castellan proxy nginx` or `haproxy` prints asks the application then, and
    # stores the answer in place of the old one. The URLs are kept in the table `castellan_urls`.
    #
    #   Refresh.new("http://127.0.0.1:8080").purge(%w[posts/7])
    class Refresh
      # @param url [String] of the proxy, as this process reaches it
      # @param timeout [Numeric] seconds for each URL
      def initialize(url, timeout: 5)
        @requests = Requests.new(url, seconds: timeout)
      end

      # Called by {Purge}.
      # @param outbox [Outbox]
      def keep_in(outbox)
        @outbox = outbox
      end

      # Called with each document that the proxy may store.
      # @param tags [Array<String>]
      # @param env [Hash] Rack's environment
      # @param vary [String]
      def note(tags, env, vary)
        names = vary.downcase.split(/\s*,\s*/)
        fields = names.sort.to_h { |name| [name, env["HTTP_#{name.upcase.tr("-", "_")}"]] }.compact
        path = "#{env["SCRIPT_NAME"]}#{env["PATH_INFO"]}"
        path = "#{path}?#{env["QUERY_STRING"]}" unless env["QUERY_STRING"].to_s.empty?
        fields["host"] = env["HTTP_HOST"] if env["HTTP_HOST"]
        @outbox.remember(tags, path, JSON.generate(fields))
      end

      # @param tags [Array<String>]
      # @raise [Error]
      def purge(tags)
        @outbox.forget_urls
        @requests.call(@outbox.urls(tags).map { |path, fields|
          Net::HTTP::Get.new(path, { **JSON.parse(fields), "cache-control" => "no-cache", "castellan-refresh" => "1" })
        }, missing: true)
      end
    end
  end
end
