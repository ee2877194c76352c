# frozen_string_literal: true

require "test_helper"
require "rack"
require "rack/lint"
require "rack/mock_request"
require "serve/journal"

# Requests to a server of the journal, between two layers of Rack::Lint. The viewer is the number in Authorization.
#
#   module FiltersContract
#     include JournalRequests
#     def build = serve { |models| resource models::PostResource }
#     def test_… = assert_equal 200, get("/posts").first.status
#   end
#   JournalRequests.on_every_database(FiltersContract)   # FiltersOnActiveRecordSqliteTest and three more
module JournalRequests
  JSON_API = "application/vnd.api+json"

  def self.on_every_database(contract)
    pairs = %i[active_record sequel].product(%i[sqlite postgres])
    pairs -= [%i[active_record sqlite], %i[sequel postgres]] if Castellan::TestHelpers.part?
    pairs.each do |orm, database|
      name = "#{contract.name.delete_suffix("Contract")}On#{orm == :sequel ? "Sequel" : "ActiveRecord"}#{database.capitalize}Test"
      Object.const_set(name, Class.new(Minitest::Test) do
        include contract

        define_method(:journal) do
          needs :postgres if database == :postgres
          Journal.public_send(orm, database)
        end
      end)
    end
  end

  def setup
    journal.fill
    @app = build
  end

  def serve(&block)
    models = journal.models
    Rack::Lint.new(Rack::Lint.new(Castellan.app do
      authenticate { |env| env.fetch("HTTP_AUTHORIZATION", "0").to_i }
      instance_exec(models, &block)
    end))
  end

  # A subclass of a resource of the journal, with further declarations.
  def resource_of(name, &block)
    Class.new(journal.models.const_get(name), &block)
  end

  def request(method, path, input: nil, **headers)
    env = Rack::MockRequest.env_for("/", method: method, **(input ? { input: input } : {}))
    env.delete("CONTENT_TYPE")
    path, query = path.split("?", 2)
    env = env.merge(headers.transform_keys(&:to_s).compact, "PATH_INFO" => path, "QUERY_STRING" => query.to_s)
    Rack::MockResponse[*@app.call(env)]
  end

  def get(path, **headers)
    response = request("GET", path, **headers)
    [response, response.body.empty? ? nil : JSON.parse(response.body)]
  end

  # Keywords are the data, or after the data the header fields.
  def send_data(method, path, *data, **pairs)
    data, headers = data.empty? ? [pairs, {}] : [data.first, pairs]
    response = request(method, path, input: JSON.generate(data: data), "CONTENT_TYPE" => JSON_API, **headers)
    [response, response.body.empty? ? nil : JSON.parse(response.body)]
  end

  # @return [Array<String>] the ids of the primary data
  def ids(path, **headers)
    response, document = get(path, **headers)
    assert_equal 200, response.status, response.body
    document["data"].map { |object| object["id"] }
  end

  def assert_bad_parameter(parameter, path, detail = nil)
    response, document = get(path)
    assert_equal [400, parameter], [response.status, document["errors"]&.first&.dig("source", "parameter")], "#{path}: #{response.body}"
    assert_includes document["errors"].first["detail"], detail if detail
  end
end
