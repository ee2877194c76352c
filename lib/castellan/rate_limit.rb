# frozen_string_literal: true

require "digest/sha2"
require "ipaddr"
require "json"
require_relative "errors"
require_relative "store"

begin
  require "rack/attack"
rescue LoadError => error
  raise unless error.path == "rack/attack"

  raise Castellan::ConfigurationError, "Castellan::RateLimit needs rack-attack: write gem \"rack-attack\" into the Gemfile"
end

module Castellan
  # Limits the requests of each client, with rack-attack. A Rack middleware.
  #
  #   store = Castellan::Store::RedisStore.new(url: ENV["REDIS_URL"])
  #   use Castellan::RateLimit, limit: 300, period: 60, store: store
  #
  # Above the limit, clients get a 429 with Retry-After and a JSON:API error document. Responses have
  # RateLimit-Policy and RateLimit, with the remaining requests (draft-ietf-httpapi-ratelimit-headers), unless
  # a shared cache may store them. If the store fails, requests pass.
  class RateLimit
    MOST_COST = 100
    NAME = /\A[ !#-\[\]-~]+\z/ # a String of RFC 9651 without escapes
    STORED = /\b(?:s-maxage|max-age)\s*=\s*"?0*[1-9]/i
    private_constant :MOST_COST, :NAME, :STORED

    # Proxies write X-Forwarded-For and pass on the Forwarded of clients, which Rack would read first.
    class Client < Rack::Request
      # Servers and proxies that listen on IPv6 may write IPv4 addresses as ::ffff:10.0.0.1.
      def trusted_proxy?(address) = super || super(address.to_s.sub(/\A::ffff:(?=\d+\.)/i, ""))

      private

      def forwarded_priority = super.sort_by { |type| type == :x_forwarded ? 0 : 1 }
    end
    private_constant :Client

    # The default cost of a request to {Castellan.app}: one, plus one for each included path and for each
    # hundred records of the page.
    COST = lambda do |request|
      include = request.GET["include"] # not `params`, which would read the body
      page = request.GET["page"]
      size = page.is_a?(Hash) ? page["size"].to_i : 0
      1 + (include.is_a?(String) ? include.count(",") + 1 : 0) + (size / 100)
    rescue StandardError # the application answers unreadable parameters with 400
      1
    end

    # @param app [#call] Rack application
    # @param limit [Integer] the total cost of the requests that a client may send in a period
    # @param period [Integer] seconds
    # @param by [Symbol, #call] identifies the client. `:address`: the IP address, or the /64 of an IPv6
    #   address; set trusted proxies with `Rack::Request.ip_filter`. `:token`: the Authorization field, or
    #   else the address; a client that invents tokens is not limited, so add another limit by address. A
    #   callable gets a Rack::Request and returns the client's key: a String, an Integer or a record; nil: not
    #   limited
    # @param cost [Integer, #call] of a request, 1 to 100; a callable gets a Rack::Request; default: {COST}
    # @param store [Object, nil] see {Store.for}; nil: `Rack::Attack.cache.store`, in Rails its cache
    # @param name [String] distinguishes several limits, also for clients; printable ASCII without " and \
    # @param log [#call, nil] called with a line when the store fails
    # @raise [ConfigurationError] if an option is invalid
    def initialize(app, limit:, period:, by: :address, cost: COST, store: nil, name: "default", log: nil)
      [limit, period].each { |number| whole!(number) }
      @app = app
      @limit = limit
      @period = period
      @by = %i[token address].include?(by) ? method(by) : by
      refuse("by: must be :token, :address or callable, got #{by.inspect}") unless @by.respond_to?(:call)

      @cost = OptionCheck.check(self.class, :cost, cost, "a whole number from 1 to #{MOST_COST} or callable", 1) do
        cost.respond_to?(:call) || (cost.is_a?(Integer) && cost.between?(1, MOST_COST))
      end
      OptionCheck.check(self.class, :name, name, "a String of printable ASCII without \" and \\", "\"api\"") do
        name.is_a?(String) && name.b.match?(NAME)
      end
      OptionCheck.log(self.class, log)
      @store = Store::FailSafe.new(store || default_store, log: log, effect: "requests are not counted",
                                                           name: "Castellan::RateLimit store:")
      @name = "castellan #{name}"
      @policy = %("#{name}";q=#{limit};w=#{period})
      @label = %("#{name}")
    end

    # @param env [Hash] Rack's environment
    # @return [Array] Rack's response
    def call(env)
      now = Clock.now.to_i # the period may end before the response does
      counted = count(Client.new(env), now) or return @app.call(env)
      response = counted > @limit ? refused(env, rest(now)) : @app.call(env)
      unless response[1].frozen? || shared?(response[1])
        append(response[1], "ratelimit-policy", @policy)
        left = (now + rest(now) - Clock.now.to_i).clamp(0, @period)
        append(response[1], "ratelimit", %(#{@label};r=#{[@limit - counted, 0].max};t=#{left}))
      end
      response
    end

    private

    # @return [Integer, nil] the cost of the client's requests in this period; 0 if the store fails
    def count(request, now)
      client = @by.call(request) or return
      client = "#{client.class.name} #{client.id}" if client.respond_to?(:id)
      cost = (@cost.respond_to?(:call) ? @cost.call(request) : @cost).to_i.clamp(1, MOST_COST)
      @store.increment("#{Rack::Attack.cache.prefix}:#{now / @period}:#{@name}:#{client}", cost, ttl: rest(now) + 1) || 0
    end

    # A cache would send what this client has left to others.
    def shared?(headers)
      return true if headers["cdn-cache-control"]

      control = headers["cache-control"].to_s
      control.match?(STORED) && !control.match?(/\bprivate\b/i)
    end

    # The fields are lists: each limit on the way adds its own.
    def append(headers, name, value)
      headers[name] = [headers[name], value].compact.join(", ")
    end

    def default_store
      store = Rack::Attack.cache.store
      store.is_a?(Rack::Attack::BaseProxy) ? store.__getobj__ : store
    end

    def token(request)
      field = request.get_header("HTTP_AUTHORIZATION")
      return address(request) if field.nil? || field.empty?

      Digest::SHA256.hexdigest(field.b.strip.sub(/\A(\S+)\s+/) { "#{Regexp.last_match(1).downcase} " }) # servers read these as equal
    end

    def address(request)
      address = IPAddr.new(request.ip.to_s)
      address = address.native if address.ipv6?
      (address.ipv6? ? address.mask(64) : address).to_s
    rescue IPAddr::Error
      "unknown"
    end

    # Like those of Rack::Attack, periods begin at multiples of their length.
    def rest(now) = @period - (now % @period)

    def refused(env, rest)
      body = JSON.generate(errors: [{ status: "429", title: "Too many requests",
                                      detail: "the limit of #{@limit} in #{@period} seconds is reached; try again in #{rest} seconds" }])
      [429, { "content-type" => "application/vnd.api+json", "content-length" => body.bytesize.to_s, "retry-after" => rest.to_s,
              "cache-control" => "no-store" }, env["REQUEST_METHOD"] == "HEAD" ? [] : [body]]
    end

    def whole!(number)
      refuse("limit: and period: must be whole numbers above 0, got #{number.inspect}") unless number.is_a?(Integer) && number.positive?
    end

    def refuse(text)
      raise ConfigurationError, "RateLimit: #{text}"
    end
  end
end
