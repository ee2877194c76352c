# frozen_string_literal: true

require "test_helper"
require "json"
require "jwt"
require "net/http"
require "open3"
require "sequel"
require_relative "../../examples/mail_logs/shared/schema"
require_relative "../../examples/mail_logs/shared/seeds"

# The whole server of the mail log story: reads, queries and writes through Puma.
class MailLogsCastellanTest < Minitest::Test
  FILE = File.join(ROOT, "examples/mail_logs/castellan/config.ru")
  SECRET = "s" * 32
  MEDIA_TYPE = "application/vnd.api+json"
  ATOMIC = %(#{MEDIA_TYPE};ext="https://jsonapi.org/ext/atomic").freeze

  def test_the_readme_shows_the_file
    program = File.read(FILE).delete_prefix("# frozen_string_literal: true\n\n")
    assert File.read(File.join(ROOT, "README.md")).include?(program), "copy #{FILE} into the README"
    assert_operator File.readlines(FILE).size, :<=, 70
  end

  def test_it_reads_and_writes_on_sqlite
    Dir.mktmpdir { |directory| serve("sqlite://#{directory}/mail_logs.sqlite3") { replay } }
  end

  def test_it_reads_and_writes_on_postgres
    needs :postgres
    serve(Castellan::TestServers.postgres_url) { replay }
  end

  private

  def serve(url)
    Sequel.connect(url) do |database|
      Schema.new(database).create
      Seeds.new(database, multiplier: 1).insert
    end
    Castellan::TestServers.puma(FILE, env: { "DATABASE_URL" => url, "JWT_SECRET" => SECRET }) do |base|
      @base = base
      yield
    end
  end

  def replay
    assert_equal 401, request(:Get, "/mail-logs", token: "x").first
    read
    id = create
    change(id)
    operate(id)
    assert_equal 404, request(:Get, "/mail-logs/#{id}").first
  end

  def read
    _, page = request(:Get, "/mail-logs?include=category,company&page[size]=2")
    assert_equal [5_000, 2, 5_000], [page["meta"]["record-count"], page["data"].size, page["data"].first["attributes"]["number"]]
    _, found = request(:Get, "/mail-logs?filter[in-or-out]=out&filter[received-on][gte]=2015-02-01&sort=company,-number&include=company")
    assert_operator found["meta"]["record-count"], :<, 5_000
    assert_equal(%w[out], found["data"].map { |log| log["attributes"]["in-or-out"] }.uniq)
    names = found["included"].map { |company| company["attributes"]["name"] }
    assert_equal names.sort, names
    assert_equal 400, request(:Get, "/mail-logs?filter[received-on]=yesterday").first
    _, statistics = request(:Get, "/company-statistics?sort=-mail-logs-count&page[size]=1")
    path = "/company-statistics/#{statistics["data"].first["id"]}"
    assert_equal statistics["data"].first, request(:Get, path).last["data"]
  end

  def create
    log = { type: "mail-logs", attributes: { number: 9_000, "in-or-out": "in", "received-on": "2026-01-31", "value-net": "12.50" },
            relationships: { category: { data: { type: "categories", id: "1" } }, company: { data: { type: "companies", id: "1" } } } }
    status, created = request(:Post, "/mail-logs", data: log)
    assert_equal [201, "2026-01-31"], [status, created.dig("data", "attributes", "received-on")], created
    assert_equal [409, "/data/attributes/number"], refusal(:Post, "/mail-logs", data: log)
    log[:attributes] = log[:attributes].merge(number: 9_001, "in-or-out": "up")
    assert_equal [422, "/data/attributes/in-or-out"], refusal(:Post, "/mail-logs", data: log)
    created["data"]["id"]
  end

  def change(id)
    changed = { type: "mail-logs", id: id, attributes: { comment: "Paid" } }
    assert_equal 200, request(:Patch, "/mail-logs/#{id}", data: changed).first
    assert_equal 204, request(:Patch, "/mail-logs/#{id}/relationships/company", data: { type: "companies", id: "2" }).first
    assert_equal "2", request(:Get, "/mail-logs/#{id}/company").last["data"]["id"]
  end

  def operate(id)
    added = { op: "add", data: { type: "companies", attributes: { name: "Alder & Sons" } } }
    removed = { op: "remove", ref: { type: "mail-logs", id: id } }
    status, results = request(:Post, "/operations", type: ATOMIC, "atomic:operations": [added, removed])
    assert_equal [200, "Alder & Sons"], [status, results.dig("atomic:results", 0, "data", "attributes", "name")], results
  end

  def refusal(*arguments, **document)
    status, errors = request(*arguments, **document)
    [status, errors.dig("errors", 0, "source", "pointer")]
  end

  def request(verb, path, token: JWT.encode({ sub: "1", exp: Time.now.to_i + 600 }, SECRET, "HS256"), type: MEDIA_TYPE, **document)
    uri = URI("#{@base}#{path.gsub("[", "%5B").gsub("]", "%5D")}")
    message = Net::HTTP.const_get(verb).new(uri, "authorization" => "Bearer #{token}", "accept" => type)
    message.set_content_type(type) && message.body = JSON.generate(document) unless document.empty?
    message["content-type"] = type unless document.empty?
    response = Net::HTTP.start(uri.host, uri.port) { |http| http.request(message) }
    [response.code.to_i, response.body.to_s.empty? ? nil : JSON.parse(response.body)]
  end
end
