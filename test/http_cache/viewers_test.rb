# frozen_string_literal: true

require "test_helper"
require "support/cached_application"

# Random requests of several viewers: no answer crosses, and none is older than the last change.
class HTTPCacheViewersTest < Minitest::Test
  REQUESTS = Castellan::TestHelpers.all? ? 60_000 : 5_000
  DIRECTIVES = %w[max-age=5 max-age=50 s-maxage=5 public private no-store no-cache must-revalidate stale-while-revalidate=20
                  stale-if-error=20 private="x-a" no-cache="x-a" must-understand].freeze
  CLIENT = [nil, nil, nil, "no-cache", "max-age=0", "max-stale", "no-store", "only-if-cached", "min-fresh=3"].freeze
  # name => the fields that identify the viewer
  VIEWERS = {
    "nobody" => {}, "also nobody" => {},
    "token 1" => { "Authorization" => "Bearer 1" }, "token 2" => { "Authorization" => "Bearer 2" },
    "cookie 1" => { "Cookie" => "session=1" }, "cookie 2" => { "Cookie" => "session=2" },
    "both 1" => { "Authorization" => "Bearer 1", "Cookie" => "session=1" }, "proxy" => { "X-Forwarded-Host" => "evil.org" }
  }.freeze

  # The rules of the RFC and the documentation, written down a second time.
  Answer = Struct.new(:viewer, :directives, :cookie, :language, :modified) do
    def shared?
      return false if cookie || directives.include?("private")
      return false if directives.include?("no-store") && !directives.include?("must-understand")
      return false if authorized?(viewer) && !permits_credentials?

      explicit? || !identified?(viewer)
    end

    def for?(other, other_language)
      return true if other == viewer && other_language == language

      shared? && (language.nil? || language == other_language) && (!authorized?(other) || permits_credentials?) &&
        (explicit? || !identified?(other)) && (viewer == "proxy") == (other == "proxy")
    end

    def permits_credentials? = directives.any? { |one| one.match?(/\A(?:public|s-maxage|must-revalidate)/) }
    def explicit? = directives.any? { |one| one.match?(/\A(?:public|s-maxage|max-age)/) }
    def authorized?(name) = VIEWERS[name].key?("Authorization")
    def identified?(name) = authorized?(name) || VIEWERS[name].key?("Cookie")
  end

  # A store in which another request stores its response between the two reads of a request.
  class RacingStore < Castellan::Store::MemoryStore
    attr_writer :race

    def read_multi(keys) = super.tap { racing }
    def decoded(key, &) = super.tap { racing }

    private

    def racing
      race = @race
      @race = nil
      race&.call
    end
  end

  def test_what_is_stored_meanwhile_neither_validates_nor_replaces_an_answer_with_credentials
    [{ "Cookie" => "session=1" }, { "Authorization" => "Bearer 1" }].each do |credentials|
      [200, 503].each do |status|
        world = Castellan::CachedApplication.new(store: store = RacingStore.new)
        world.answer do |env|
          own = !env.values_at("HTTP_COOKIE", "HTTP_AUTHORIZATION").compact.empty?
          fields = { "etag" => '"a"', "last-modified" => world.date(-100_000), "cache-control" => "stale-if-error=60" }
          if own && env["HTTP_IF_NONE_MATCH"] then [304, fields, []]
          else own ? [status, fields, ["own"]] : [200, fields, ["of nobody"]]
          end
        end
        store.race = -> { world.get("/") }
        answer = world.get("/", credentials)
        assert_equal [status, "own"], [answer.status, answer.body], credentials
        assert_equal 2, world.requests.size
      end
    end
  end

  def test_no_answer_crosses_viewers
    random = Random.new(Minitest.seed)
    answers = []
    hits = 0
    world = Castellan::CachedApplication.new
    lock = Mutex.new # of the background validations
    world.answer { |env| lock.synchronize { respond(env, answers, random, world) } }
    REQUESTS.times do
      viewer = VIEWERS.keys.sample(random: random)
      language = [nil, "de", "en"].sample(random: random)
      fields = { "Accept-Language" => language, "Cache-Control" => CLIENT.sample(random: random) }.compact
      name = [*%w[GET] * 10, "HEAD", "HEAD", "POST"].sample(random: random)
      answered = world.call(name, "/#{random.rand(6)}", VIEWERS[viewer].merge(fields), env: { "viewer" => viewer })
      world.later(random.rand(4))
      next if answered.status == 504

      hits += 1 if answered.hit?
      given = answers[Integer(answered["x-number"])]
      assert given.for?(viewer, given.language && (language || "none")), "#{given} for #{viewer} in #{language.inspect}: #{answered.note}"
      next if name == "HEAD" || answered.body == answered["x-number"]

      # A response to HEAD has updated the fields, and may share with more viewers what was shared already.
      content = answers[Integer(answered.body)]
      assert content.shared? && [nil, language || "none"].include?(content.language), "the content of #{content} for #{viewer}"
    end
    world.cache.refreshes.wait
    assert_operator hits, :>, REQUESTS / 40
  end

  # Readers and writers in threads: what a writer has been answered is what later readers see.
  def test_no_answer_is_older_than_the_last_change
    versions = Array.new(4, 0)
    lock = Mutex.new
    application = lambda do |env|
      index = Integer(env["PATH_INFO"].delete("/"))
      next lock.synchronize { [200, {}, [(versions[index] += 1).to_s]] } if env["REQUEST_METHOD"] == "POST"

      version = lock.synchronize { versions[index] }
      Thread.pass
      [200, { "cache-control" => "max-age=1000", **(index.odd? ? { "vary" => "accept" } : {}) }, [version.to_s]]
    end
    cache = Castellan::HTTPCache.new(application)
    ask = ->(name, index) { Integer(cache.call(Rack::MockRequest.env_for("http://example.org/#{index}", method: name))[2].join) }
    stale = Array.new(6) do |number|
      random = Random.new(Minitest.seed + number)
      Thread.new do
        (REQUESTS / 10).times.count do
          index = random.rand(4)
          written = random.rand(5).zero? ? ask.call("POST", index) : lock.synchronize { 0 }
          ask.call("GET", index) < written
        end
      end
    end
    assert_equal [0] * 6, stale.map(&:value)
  end

  private

  def respond(env, answers, random, world)
    directives = DIRECTIVES.sample(random.rand(4), random: random)
    language = env["HTTP_ACCEPT_LANGUAGE"] || "none" if random.rand(3).zero?
    answer = Answer.new(env["viewer"], directives, random.rand(6).zero?, language, random.rand(4).zero?)
    answers << answer
    number = (answers.size - 1).to_s
    fields = { "cache-control" => directives.join(", "), "x-a" => "1", "x-number" => number }
    fields["content-location"] = env["PATH_INFO"] if random.rand(2).zero?
    fields["set-cookie"] = "session=1" if answer.cookie
    fields["vary"] = "Accept-Language" if language
    fields["last-modified"] = world.date(-1_000) if answer.modified
    [200, fields, env["REQUEST_METHOD"] == "HEAD" ? [] : [number]]
  end
end
