# frozen_string_literal: true

require "rack/lint"
require "rack/mock_request"
require "castellan/http_cache"

module Castellan
  # Runs an application behind a Castellan::HTTPCache, with Rack::Lint on both sides and its own clock.
  #
  #   world = CachedApplication.new { |env| [200, { "cache-control" => "max-age=60" }, ["one"]] }
  #   world.get("/x").hit?             # => false
  #   world.later(5)
  #   world.get("/x", "Accept" => "a").age  # => 5
  #   world.requests.size              # => 1, the environments that the application received
  class CachedApplication
    START = Time.utc(2026, 3, 1, 12)

    Response = Struct.new(:status, :headers, :body) do
      def [](name) = Array(headers[name]).join(", ").then { |value| value unless value.empty? }
      def note = self["cache-status"]
      def hit? = note.include?("; hit")
      def age = self["age"]&.to_i
    end

    attr_reader :requests, :cache, :now

    def initialize(store: Castellan::Store::MemoryStore.new, **options, &application)
      @now = START
      @requests = []
      @application = application
      @lock = Mutex.new
      @cache = HTTPCache.new(Rack::Lint.new(method(:application)), store: store, clock: self, **options)
      @stack = Rack::Lint.new(@cache)
    end

    def answer(&application)
      @application = application
    end

    def later(seconds)
      @now += seconds
    end

    def get(path = "/", fields = {}, **options) = call("GET", path, fields, **options)
    def head(path = "/", fields = {}, **options) = call("HEAD", path, fields, **options)
    def post(path = "/", fields = {}, **options) = call("POST", path, fields, **options)

    # @param fields [Hash] header fields of the request, "If-None-Match" => "…"
    # @param env [Hash] more entries of the environment
    # @return [Response]
    def call(http_method, path, fields = {}, env: {}, input: nil)
      names = fields.to_h { |name, value| ["HTTP_#{name.upcase.tr("-", "_")}", value] }
      names = { "HTTP_HOST" => "example.org" }.merge(names, env)
      url = "http://example.org#{path}"
      status, headers, body = @stack.call(Rack::MockRequest.env_for(url, method: http_method, input: input, **names))
      text = +""
      body.each { |chunk| text << chunk }
      body.close if body.respond_to?(:close)
      Response.new(status, headers, text)
    end

    # @return [String] the HTTP date in so many seconds
    def date(seconds = 0) = HTTPCache::HTTPDate.format(@now + seconds)

    private

    def application(env)
      @lock.synchronize { @requests << env.dup }
      @application.call(env)
    end
  end
end
