# frozen_string_literal: true

require "test_helper"
require "jwt"
require "minitest/mock"
require "rack"
require "rack/lint"
require "rack/mock_request"
require "serve/journal"

# `authenticate jwt:` over HTTP: tokens that are forged, expired, for others, or too long, and key sets that rotate or are away.
class JwtTest < Minitest::Test
  SECRET = "s3cret-" * 8
  RSA = OpenSSL::PKey::RSA.new(2048)
  OTHER = OpenSSL::PKey::RSA.new(2048)
  CURVE = OpenSSL::PKey::EC.generate("prime256v1")

  def setup
    Journal.active_record(:sqlite).fill
  end

  def test_a_valid_token_gives_its_claims_to_the_block
    seen = nil
    app = build(key: SECRET, algorithms: %w[HS256]) { |claims| (seen = claims) && claims["team"] }
    assert_equal 200, get(app, token("team" => 1, "roles" => [{ "name" => "a" }])).status
    assert_equal [1, true, true], [seen["team"], seen.frozen?, seen["roles"].first.frozen?]
    assert_equal %w[1], JSON.parse(get(app, token("team" => 1)).body)["data"].map { |post| post["id"] } - %w[2]
  end

  def test_without_a_token_the_challenge_is_plain
    app = build(key: SECRET, algorithms: %w[HS256])
    ["", nil, "Basic YTpi"].each do |field|
      response = request(app, field)
      assert_equal [401, 'Bearer realm="api"'], [response.status, response["www-authenticate"]], field.inspect
    end
  end

  def test_tokens_that_are_not_valid_are_401_with_an_error_document
    app = build(key: SECRET, algorithms: %w[HS256], issuer: "me", audience: %w[api web], leeway: 5)
    good = { "iss" => "me", "aud" => "api" }
    assert_equal 200, get(app, token(good)).status
    assert_equal 200, get(app, token(good.merge("exp" => Time.now.to_i - 2))).status
    wrong = {
      "expired" => token(good.merge("exp" => Time.now.to_i - 10)), "no exp" => token(good, exp: nil),
      "future" => token(good.merge("nbf" => Time.now.to_i + 60)),
      "other issuer" => token(good.merge("iss" => "you")), "no issuer" => token("aud" => "api"), "no audience" => token("iss" => "me"),
      "other audience" => token(good.merge("aud" => "else")), "other secret" => token(good, key: "x" * 32),
      "other algorithm" => token(good, algorithm: "HS512"),
      "none" => JWT.encode(good.merge("exp" => Time.now.to_i + 60), nil, "none"), "none with signature" => "#{JWT.encode(good, nil,
                                                                                                                         "none")}abc",
      "critical" => token(good, header: { "crit" => ["b64"], "b64" => false }), "huge exp" => raw(%({"exp":1e400,"iss":"me","aud":"api"})),
      "array" => raw("[1]"), "number" => raw("7"), "not JSON" => raw("{"), "deep" => raw("#{"[" * 200}#{"]" * 200}"),
      "exp object" => raw(%({"exp":{},"iss":"me","aud":"api"})),
      "too long" => token(good.merge("x" => "x" * 9_000)), "not base64" => "a.b.c", "two parts" => "a.b", "bytes" => "\xFF\xFE.a.b".b,
      "NUL" => "a.b.c\0", "" => ""
    }
    wrong.each do |name, text|
      response = get(app, text)
      assert_equal [401, "application/vnd.api+json"], [response.status, response["content-type"]], name
      assert_match(/\ABearer realm="api", error="invalid_token"/, response["www-authenticate"], name)
      error = JSON.parse(response.body)["errors"].first
      assert_equal ["401", { "header" => "Authorization" }], error.values_at("status", "source"), name
    end
  end

  def test_a_changed_signature_is_refused_after_the_token_was_accepted
    app = build(key: SECRET, algorithms: %w[HS256])
    text = token({})
    assert_equal 200, get(app, text).status
    assert_equal 401, get(app, "#{text[0..-3]}#{text[-2] == "A" ? "B" : "A"}#{text[-1]}").status
    assert_equal 401, get(app, text.sub(/\.[^.]+\z/, ".")).status
  end

  def test_a_remembered_token_expires
    app = build(key: SECRET, algorithms: %w[HS256])
    text = token("exp" => Time.now.to_i + 20)
    assert_equal 200, get(app, text).status
    Castellan::Clock.stub(:now, Time.now + 21) { assert_equal 401, get(app, text).status }
  end

  def test_a_public_key_is_no_secret
    pem = RSA.public_to_pem
    app = build(key: pem, algorithms: %w[RS256])
    assert_equal 200, get(app, token({}, key: RSA, algorithm: "RS256")).status
    assert_equal 401, get(app, token({}, key: pem, algorithm: "HS256")).status
    assert_equal 401, get(app, token({}, key: OTHER, algorithm: "RS256")).status
  end

  def test_secrets_can_be_rotated
    app = build(key: [SECRET, "n" * 32], algorithms: %w[HS256])
    assert_equal [200, 200, 401], [SECRET, "n" * 32, "o" * 32].map { |key| get(app, token({}, key: key)).status }
  end

  def test_a_viewer_that_the_block_does_not_find_is_401
    app = build(key: SECRET, algorithms: %w[HS256]) { |_claims| nil }
    assert_equal 401, get(app, token({})).status
  end

  def test_errors_of_the_block_are_raised
    app = build(key: SECRET, algorithms: %w[HS256]) { |_claims| raise "broken" }
    assert_equal "broken", assert_raises(RuntimeError) { get(app, token({})) }.message
  end

  def test_wrong_options_fail_when_the_app_is_built
    pem = RSA.public_to_pem
    {
      { algorithms: %w[HS256] } => "either key: or jwks_url:", { key: SECRET } => "algorithms:",
      { key: "", algorithms: %w[HS256] } => "at least 32 bytes",
      { key: "short", algorithms: %w[HS256] } => "at least 32 bytes", { key: SECRET, algorithms: %w[none] } => '"none" is not one of',
      { key: "x" * 63, algorithms: %w[HS256 HS512] } => "at least 64 bytes",
      { key: pem, algorithms: %w[HS256] } => "at least 32 bytes", { key: SECRET, algorithms: %w[HS256 RS256] } => "one family",
      { key: "nonsense", algorithms: %w[RS256] } => "PEM", { key: 7, algorithms: %w[RS256] } => "public key",
      { key: [], algorithms: %w[RS256] } => "empty",
      { jwks_url: "http://id.example.org/keys", algorithms: %w[RS256] } => "https://",
      { jwks_url: "https://id.example.org", algorithms: %w[HS256] } => "public keys only",
      { jwks_url: "a b", algorithms: %w[RS256] } => "not a URL", { key: SECRET, algorithms: %w[HS256], leeway: -1 } => "leeway:",
      { key: SECRET, algorithms: %w[HS256], audience: [] } => "audience:",
      { key: SECRET, algorithms: %w[HS256], isuer: "x" } => "did you mean issuer?"
    }.each do |options, text|
      assert_includes assert_raises(Castellan::ConfigurationError) { build(**options) }.message, text
    end
  end

  # --- key sets

  def test_keys_are_fetched_once_and_again_when_they_rotate
    serve(jwk("a", RSA)) do |url, state|
      app = build(jwks_url: url, algorithms: %w[RS256 ES256])
      3.times { assert_equal 200, get(app, signed("a", RSA)).status }
      assert_equal 1, state[:requests]
      state[:keys] = [jwk("a", RSA), jwk("b", OTHER), jwk("c", CURVE)]
      assert_equal 401, get(app, signed("b", OTHER)).status
      later(61) do
        assert_equal [200, 200],
                     [get(app, signed("b", OTHER)).status,
                      get(app, token({}, key: CURVE, algorithm: "ES256", header: { "kid" => "c" })).status]
        9.times { |number| assert_equal 401, get(app, signed("invented-#{number}", RSA)).status }
      end
      assert_equal 2, state[:requests]
      assert_equal 401, get(app, signed(nil, RSA)).status
    end
  end

  def test_a_key_fits_by_id_and_algorithm_alone
    serve(jwk("a", RSA), jwk("b", OTHER).merge("use" => "enc"), { "kty" => "oct", "kid" => "s", "k" => "c2VjcmV0" }, 7,
          { "kty" => "RSA", "kid" => "n" }, jwk("ps", OTHER).merge("alg" => "PS256"), jwk("weak", OpenSSL::PKey::RSA.new(1024))) do |url|
      app = build(jwks_url: url, algorithms: %w[RS256])
      assert_equal [200, 200], [get(app, signed("a", RSA)).status, get(app, signed(nil, RSA)).status]
      [signed("b", OTHER), signed("ps", OTHER), signed("a", OTHER), signed("n", RSA), signed({ "a" => 1 }, RSA),
       token({}, key: "secret", header: { "kid" => "s" })].each { |text| assert_equal 401, get(app, text).status }
    end
  end

  def test_keys_are_used_while_their_server_is_away
    serve(jwk("a", RSA)) do |url, state|
      app = build(jwks_url: url, algorithms: %w[RS256])
      assert_equal 200, get(app, signed("a", RSA)).status
      later(599) { assert_equal 200, get(app, signed("a", RSA, "exp" => Time.now.to_i + 4_000)).status }
      assert_equal 1, state[:requests], "the keys are fresh"
      state[:status] = 500
      _, err = capture_io { later(700) { 3.times { assert_equal 200, get(app, signed("a", RSA, "exp" => Time.now.to_i + 5_000)).status } } }
      assert_equal [2, 1], [state[:requests], err.lines.size]
      capture_io { later(90_000) { assert_equal 503, get(app, signed("a", RSA, "exp" => Time.now.to_i + 99_000)).status } }
    end
  end

  def test_without_keys_the_answer_is_503
    app = build(jwks_url: "http://127.0.0.1:#{free_port}/keys", algorithms: %w[RS256])
    capture_io do
      response = get(app, signed("a", RSA))
      assert_equal [503, "1"], [response.status, response["retry-after"]]
      assert_equal "503", JSON.parse(response.body)["errors"].first["status"]
    end
    ["", "[]", "{\"keys\":{}}", "{\"keys\":[]}", "x" * 300_000].each do |body|
      serve do |url, state|
        state[:body] = body
        capture_io { assert_equal 503, get(build(jwks_url: url, algorithms: %w[RS256]), signed("a", RSA)).status }
      end
    end
  end

  def test_threads_share_one_fetch
    serve(jwk("a", RSA)) do |url, state|
      app = build(jwks_url: url, algorithms: %w[RS256])
      assert_equal [200], Array.new(8) { Thread.new { get(app, signed("a", RSA)).status } }.map(&:value).uniq
      assert_equal 1, state[:requests]
    end
  end

  private

  def build(**jwt, &block)
    models = Journal.active_record(:sqlite).models
    Rack::Lint.new(Castellan.app do
      authenticate(jwt: jwt, &block || ->(_claims) { 0 })
      resource models::PostResource
      resource models::WriterResource
      resource models::TagResource
      resource models::CommentResource
    end)
  end

  def get(app, text) = request(app, "Bearer #{text}")

  def request(app, authorization)
    env = Rack::MockRequest.env_for("/posts")
    env["HTTP_AUTHORIZATION"] = authorization if authorization
    Rack::MockResponse[*app.call(env)]
  end

  def token(claims = {}, key: SECRET, algorithm: "HS256", header: {}, exp: Time.now.to_i + 60, **more)
    JWT.encode({ "exp" => exp }.compact.merge(claims, more), key, algorithm, header)
  end

  def signed(kid, key, claims = {}) = token(claims, key: key, algorithm: "RS256", header: { "kid" => kid }.compact)

  # A correctly signed payload of any bytes.
  def raw(payload)
    parts = ['{"alg":"HS256"}', payload].map { |text| Base64.urlsafe_encode64(text, padding: false) }
    "#{parts.join(".")}.#{Base64.urlsafe_encode64(OpenSSL::HMAC.digest("SHA256", SECRET, parts.join(".")), padding: false)}"
  end

  def jwk(kid, key) = JWT::JWK.new(key, kid: kid).export.transform_keys(&:to_s)

  def serve(*keys)
    state = { keys: keys, requests: 0, status: 200 }
    lock = Mutex.new
    app = lambda do |_env|
      lock.synchronize { state[:requests] += 1 }
      [state[:status], { "content-type" => "application/json" }, [state[:body] || JSON.generate(keys: state[:keys])]]
    end
    Castellan::TestServers.puma(app) { |url| yield "#{url}/keys", state }
  end

  def later(seconds, &block)
    now = Castellan::Clock.monotonic_ns + (seconds * 1_000_000_000)
    Castellan::Clock.stub(:monotonic_ns, now, &block)
  end
end
