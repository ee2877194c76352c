# frozen_string_literal: true

require "test_helper"
require "rack"
require "rack/mock_request"
require "serve/journal"
require "serve/random_requests"
require "stringio"

# Random and mutated requests: none may raise or be answered with a status of the server's, and every body is what its media type
# says. `bin/test --all` sends 100,000.
module FuzzContract
  COUNT = Castellan::TestHelpers.all? ? 25_000 : 300
  REFILLED = 500 # requests after which the rows are written anew
  REFUSED = [403, 404, 405, 406, 409, 412, 413, 414, 415, 422, 428].freeze

  def test_no_request_is_an_error_of_the_server
    seed = Integer(ENV.fetch("CASTELLAN_SEED", Random.new_seed % 1_000_000))
    requests = RandomRequests.new(seed)
    statuses = Hash.new(0)
    COUNT.times do |index|
      journal.fill if (index % REFILLED).zero?
      request = requests.next
      statuses[judge(request, "CASTELLAN_SEED=#{seed}, request #{index}")] += 1
    end
    assert_operator statuses[200], :>, COUNT / 50, statuses
    assert_operator statuses[400], :>, COUNT / 50, statuses
    assert_operator statuses[201] + statuses[204], :>, 0, statuses if COUNT > 1_000 # a few hundred may contain none
  end

  private

  def judge(request, place)
    status, headers, body = app.call(request)
    text = +""
    body.each { |part| text << part }
    body.close if body.respond_to?(:close)
    context = "#{place}: #{request.except("rack.errors",
                                          "rack.input")} #{request["rack.input"].string.inspect[0, 2_000]} => #{status} #{text[0, 300]}"
    assert_operator status, :<, 500, context
    headers.each_value { |value| refute_match(/[\r\n\0]/, value, context) }
    check(text, status, headers, context) unless text.empty?
    status
  rescue Minitest::Assertion
    raise
  rescue StandardError, SystemStackError, NoMemoryError => error
    flunk("#{place}: #{error.class}: #{error.message[0, 300]}\n#{error.backtrace.first(6).join("\n")}\n" \
          "#{request.except("rack.errors", "rack.input")} #{request["rack.input"].string.inspect[0, 2_000]}")
  end

  def check(text, status, headers, context)
    return unless headers["content-type"].to_s.include?("json")

    document = JSON.parse(text)
    assert_includes document.keys, "errors", context if status >= 400
    assert_equal text.bytesize.to_s, headers["content-length"], context
  end

  def app
    @app ||= begin
      models = journal.models
      posts = Class.new(models::PostResource) do
        filter :title, :slug, :rating, :price, :pinned, :published_on, :published_at
        filter :writer_name
        filter(:own) { |scope, _values| scope }
        sort :title, :rating, :published_at, :writer_name
      end
      named = [models::WriterResource, models::TagResource].map do |resource|
        Class.new(resource) do
          filter :name
          sort :name
        end
      end
      feed = Class.new(Castellan::Resource) do
        type "feed"
        types(*named)
        page :cursor, size: 2, max_size: 9, cursors: true
      end
      Castellan.app do
        authenticate { |env| env.fetch("HTTP_AUTHORIZATION", "0").bytes.sum % 3 }
        idempotency store: Castellan::Store::MemoryStore.new
        access_log ->(_line) {}
        health
        openapi
        pages
        resource posts, at: "posts"
        resource models::CarefulPostResource, at: "careful-posts"
        resource feed
        %w[Writer Tag Comment].each { |name| resource models.const_get("#{name}Resource") }
        operations
      end
    end
  end
end

class FuzzOnActiveRecordTest < Minitest::Test
  include FuzzContract

  def journal = Journal.active_record(:sqlite)
end

class FuzzOnActiveRecordAndPostgresTest < Minitest::Test
  include FuzzContract

  def setup
    needs :postgres
  end

  def journal = Journal.active_record(:postgres)
end

class FuzzOnSequelTest < Minitest::Test
  include FuzzContract

  def journal = Journal.sequel(:sqlite)
end

class FuzzOnSequelAndPostgresTest < Minitest::Test
  include FuzzContract

  def setup
    needs :postgres
  end

  def journal = Journal.sequel(:postgres)
end
