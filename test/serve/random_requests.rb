# frozen_string_literal: true

require "json"
require "rack"
require "stringio"

# Random requests to the journal: from a grammar that knows JSON:API and the resources, some with bytes that are changed.
#
#   requests = RandomRequests.new(42)
#   app.call(requests.next)
class RandomRequests
  JSON_API = "application/vnd.api+json"
  ATOMIC = %(application/vnd.api+json;ext="https://jsonapi.org/ext/atomic")
  METHODS = %w[GET GET GET HEAD POST POST PATCH PATCH DELETE].freeze
  ODD_METHODS = %w[PUT OPTIONS TRACE CONNECT get X].freeze
  COLLECTIONS = %w[posts posts posts posts posts posts careful-posts writers tags tags tags comments comments feed operations
                   operations].freeze
  ODD_COLLECTIONS = ["openapi.json", "up", "ready", "nothing", ""].freeze
  TYPES = %w[posts writers tags comments nothing].freeze
  IDS = ["1", "2", "3", "99", "0", "-1", "1.5", "abc", "1e3", "9" * 30, "%00", "%ff", "%E2%82%AC", "..", "1%0A", "'", "1;2", ""].freeze
  ATTRIBUTES = %w[title slug body rating price pinned published_on published_at name lock_version writer_name id type secret].freeze
  RELATIONSHIPS = %w[writer tags comments post posts nothing].freeze
  OPERATORS = %w[eq not in gt gte lt lte like null nope].freeze
  TEXTS = ["First", "", "a,b", "1", "-1", "true", "null", "2026-01-31", "2026-02-30", "2026-01-31T12:00:00Z", "999999-01-01", "1e400",
           "NaN", "9" * 40, "'; DROP TABLE posts; --", "%", "_", "*", "\\", "\u0000", "\u{1F600}", "\xFF", "x" * 300,
           "[]", "{}", "é", "\u202E", "0x1F", " 1 ", "1_000"].freeze
  HEADERS = {
    "HTTP_ACCEPT" => [JSON_API, ATOMIC, "*/*", "text/html", "text/html", "#{JSON_API}; charset=utf-8", "application/*;q=0.5", "", "a/b/c",
                      "#{JSON_API};profile=\"x y\""],
    "CONTENT_TYPE" => [JSON_API, JSON_API, ATOMIC, ATOMIC, "application/json", "#{JSON_API}; ext=\"nope\"", "", "x", "#{JSON_API};"],
    "HTTP_IF_MATCH" => ["*", '"x"', 'W/"x"', "x", '"a", "b"', ""], "HTTP_IF_NONE_MATCH" => ["*", '"x"', ",,,", "\"\xFF\""],
    "HTTP_IDEMPOTENCY_KEY" => ['"k1"', "k2", "", "\xFF", "a,b"], "HTTP_AUTHORIZATION" => ["0", "1", "2", "Bearer x"],
    "CONTENT_LENGTH" => ["0", "5", "-1", "abc", "99999999999"], "SCRIPT_NAME" => ["/api", "//evil", "/\xFF"]
  }.freeze

  def initialize(seed)
    @random = Random.new(seed)
  end

  # @return [Hash] Rack's environment
  def next
    plain = path
    path = mutated(plain)
    query = mutated(self.query)
    body = mutated(self.body(plain))
    env = Rack::MockRequest.env_for("/", method: "GET").merge(
      "REQUEST_METHOD" => method_for(plain), "PATH_INFO" => path.b, "QUERY_STRING" => query.b, "rack.input" => StringIO.new(body.b),
      "CONTENT_TYPE" => plain.include?("operations") ? ATOMIC : JSON_API, "CONTENT_LENGTH" => body.bytesize.to_s
    )
    env.delete("HTTP_HOST")
    HEADERS.each { |name, values| env[name] = mutated(pick(values)) if rand?(0.12) }
    env
  end

  private

  def pick(values) = values[@random.rand(values.size)]
  def rand?(share) = @random.rand < share
  def some(most) = Array.new(@random.rand(0..most)) { yield }

  def path
    segments = [rand?(0.04) ? pick(ODD_COLLECTIONS) : pick(COLLECTIONS)]
    segments << id if rand?(0.55) && segments.first != "operations"
    segments << "relationships" if segments.size == 2 && rand?(0.25)
    segments << pick(RELATIONSHIPS) if segments.size > 1 && (segments.size == 3 || rand?(0.25))
    segments << pick(IDS) if rand?(0.03)
    "/#{segments.join("/")}#{"/" if rand?(0.02)}"
  end

  # Mostly one that is answered there.
  def method_for(path)
    return pick(ODD_METHODS) if rand?(0.03)
    return pick(METHODS) if rand?(0.3)
    return "POST" if path == "/operations"

    path.count("/") == 1 ? pick(%w[GET GET POST]) : pick(%w[GET GET PATCH PATCH DELETE])
  end

  def id = rand?(0.6) ? pick(%w[1 2 3]) : pick(IDS)

  def query
    return "" if rand?(0.6)

    some(3) { "#{escaped(name)}=#{escaped(text)}" }.join("&")
  end

  def name
    case @random.rand(9)
    when 0 then "include"
    when 1 then "fields[#{pick(TYPES)}]"
    when 2, 3 then "filter[#{pick(ATTRIBUTES + %w[own])}]"
    when 4 then "filter[#{pick(ATTRIBUTES)}][#{pick(OPERATORS)}]"
    when 5 then "sort"
    when 6 then "page[#{pick(%w[number size after before cursor offset])}]"
    when 7 then pick(%w[filter page fields filter[] page[][] a[b][c] include[] sort[x] nothing])
    else pick(TEXTS)
    end
  end

  def text
    case @random.rand(4)
    when 0 then some(3) { pick(RELATIONSHIPS) }.join(pick([".", ","]))
    when 1 then some(3) { "#{"-" if rand?(0.3)}#{pick(ATTRIBUTES)}" }.join(",")
    else pick(TEXTS)
    end
  end

  # Brackets are mostly sent as they are.
  def escaped(text)
    rand?(0.1) ? text : Rack::Utils.escape(text.dup.force_encoding(Encoding::BINARY)).gsub("%5B", "[").gsub("%5D", "]")
  end

  def body(path)
    return "" if rand?(0.1)

    document = path.include?("operations") ? { "atomic:operations" => some(3) { operation } } : { "data" => data(path) }
    document = pick([[], {}, nil, 7, { "errors" => [] }, { "data" => document }]) if rand?(0.05)
    text = JSON.generate(document)
    return text.sub("{", '{"data":1,') if rand?(0.03) # twice the same member
    return "#{"[" * 5_000}#{"]" * 5_000}" if rand?(0.005)

    text
  end

  def data(path)
    return linkage if path.include?("/relationships/")

    resource_object(path.split("/")[1].to_s.sub("careful-", ""), path.split("/")[2])
  end

  def resource_object(type, id = nil)
    found = { "type" => rand?(0.95) ? type : value }
    found["id"] = id if id && rand?(0.95)
    found["id"] = value if rand?(0.05)
    found["lid"] = rand?(0.9) ? pick(%w[a b]) : value if rand?(0.1)
    found["attributes"] = odd { pairs(rand?(0.6) ? 1 : 4, ATTRIBUTES) { value } }
    found["attributes"]["title"] = "Title" if found["attributes"].is_a?(Hash) && rand?(0.5)
    found["relationships"] = odd { pairs(2, RELATIONSHIPS) { odd { { "data" => linkage } } } } if rand?(0.3)
    rand?(0.97) ? found : value
  end

  def odd = rand?(0.95) ? yield : value

  def pairs(most, names)
    some(most) { [pick(names), yield] }.to_h
  end

  def linkage
    case @random.rand(4)
    when 0 then nil
    when 1 then some(4) { identifier }
    when 2 then identifier
    else value
    end
  end

  def identifier
    found = { "type" => pick(TYPES), pick(%w[id id id lid]) => rand?(0.7) ? id : pick(IDS + %w[a b]) }
    rand?(0.95) ? found : value
  end

  def operation
    found = { "op" => pick(%w[add update remove nope]) }
    found["ref"] = { "type" => pick(TYPES), "id" => id }.merge(rand?(0.3) ? { "relationship" => pick(RELATIONSHIPS) } : {}) if rand?(0.5)
    found["href"] = pick(["/posts/1", "/tags", "/posts/1/relationships/tags", "", "http://x/posts/1", "//", "\u0000"]) if rand?(0.2)
    found["data"] = rand?(0.7) ? resource_object(pick(TYPES), (id if rand?(0.6))) : linkage if rand?(0.8)
    rand?(0.97) ? found : value
  end

  def value
    case @random.rand(10)
    when 0 then nil
    when 1 then rand?(0.5)
    when 2 then pick([0, 1, -1, 3, 1.5, 1e300, 2**63, -(2**70), 10**400])
    when 3 then some(2) { value }
    when 4 then { pick(ATTRIBUTES) => pick([1, nil, "x"]) }
    else pick(TEXTS - ["\xFF"])
    end
  end

  # One request in four has changed bytes somewhere.
  def mutated(text)
    return text unless rand?(0.08)

    bytes = text.b
    @random.rand(1..4).times do
      place = @random.rand(bytes.bytesize + 1)
      case @random.rand(4)
      when 0 then bytes.insert(place, [@random.rand(256)].pack("C"))
      when 1 then bytes.slice!(place, @random.rand(1..5))
      when 2 then bytes.setbyte(place, @random.rand(256)) if place < bytes.bytesize
      else bytes.insert(place, bytes[@random.rand(bytes.bytesize + 1), @random.rand(1..20)].to_s)
      end
    end
    bytes
  end
end
