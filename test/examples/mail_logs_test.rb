# frozen_string_literal: true

require "test_helper"
require "base64"
require "net/http"
require "open3"
require "openssl"
require "sequel"
require "yaml"
require_relative "../../examples/mail_logs/shared/database_url"

# Finds the example and starts its programs outside of the bundle of these tests.
module MailLogsExample
  DIRECTORY = File.join(ROOT, "examples", "mail_logs")
  SECRET = "an-example-secret-that-everybody-can-read-in-the-repository"
  APPS = %w[rails sequel].freeze

  def setup_database(url, multiplier: "1")
    run_program({ "DATABASE_URL" => url, "MULTIPLIER" => multiplier }, File.join(DIRECTORY, "bin", "setup"))
  end

  # @return [Array(String, String, Process::Status)] standard output, standard error, status
  def run_program(environment, *command, **options)
    Bundler.with_unbundled_env { Open3.capture3(environment, *command, **options) }
  end

  def token(claims = { exp: Time.now.to_i + 3600 }, algorithm: "HS256", key: SECRET)
    signed = [{ alg: algorithm }, claims].map { |part| Base64.urlsafe_encode64(JSON.generate(part), padding: false) }.join(".")
    "#{signed}.#{signature(signed, algorithm, key)}"
  end

  def steps
    @steps ||= YAML.safe_load_file(File.join(DIRECTORY, "steps.yml"))
  end

  private

  def signature(signed, algorithm, key)
    return "" if algorithm == "none"

    Base64.urlsafe_encode64(OpenSSL::HMAC.digest("SHA#{algorithm[-3..]}", key, signed), padding: false)
  end
end

# The contract of both apps on any database. The including class defines `self.database_url`; its tests share
# one filled database and the two started apps.
module MailLogsPromises
  include MailLogsExample

  ATTRIBUTES = %w[number in-or-out document-date-on received-on external-number comment value-net value-vat].freeze
  PAGE = "/mail-logs?include=category,company"
  Running = Struct.new(:url, :servers)

  def self.included(test)
    test.extend ClassMethods
  end

  module ClassMethods
    include MailLogsExample

    def running
      @running ||= database_url.then { |url| Running.new(url, filled(url) && start(url)) }
    end

    private

    def filled(url)
      _out, error, status = setup_database(url)
      status.success? || raise(error)
    end

    def start(url)
      APPS.to_h do |app|
        environment = { "DATABASE_URL" => url, "LOG_LEVEL" => "debug", "WITH_CASTELLAN" => nil, "MAIL_LOGS_JWT_SECRET" => nil }
        [app, Castellan::TestServers.puma(File.join(DIRECTORY, app), env: environment)]
      end
    end
  end

  def test_both_apps_send_the_same_documents
    [PAGE, "/mail-logs", "/mail-logs?include=company&page[number]=3&page[size]=7", "/mail-logs?page[number]=999",
     "/mail-logs/7", "/mail-logs/7?include=category,company",
     "/company-statistics", "/company-statistics?page[number]=13", "/company-statistics/250"].each do |path|
      rails, sequel = APPS.map { |app| document(app, path) }
      assert_equal rails, sequel, path
    end
  end

  def test_a_page_has_twenty_mail_logs_by_number_descending
    each_app do |app|
      logs = document(app, "/mail-logs")["data"]
      assert_equal 5_000.downto(4_981).to_a, numbers(logs)
      refute_equal logs.map { |log| -Integer(log["id"]) }.sort, logs.map { |log| -Integer(log["id"]) }, "the ids are in the same order"
    end
  end

  def test_pages_are_counted_and_linked
    each_app do |app|
      page = document(app, "/mail-logs?page[number]=2&page[size]=7")
      assert_equal 4_993.downto(4_987).to_a, numbers(page["data"])
      assert_equal({ "record-count" => 5_000 }, page["meta"])
      assert_equal({ "first" => 1, "prev" => 1, "next" => 3, "last" => 715 }, page["links"].transform_values { |link| page_number(link) })
    end
  end

  def test_a_page_beyond_the_end_is_empty_and_still_counted
    each_app do |app|
      page = document(app, "/mail-logs?page[number]=251")
      assert_equal [], page["data"]
      assert_equal 5_000, page.dig("meta", "record-count")
      refute_includes page["links"], "next"
    end
  end

  def test_a_mail_log_is_a_resource_object_with_dashes_in_its_keys
    each_app do |app|
      log = document(app, "/mail-logs/7")["data"]
      row = database { |tables| tables[:mail_logs].first(id: 7) }
      assert_equal ["mail-logs", "7", ATTRIBUTES], [log["type"], log["id"], log["attributes"].keys.sort_by { |key| ATTRIBUTES.index(key) }]
      assert_equal [row[:comment], row[:received_on].iso8601, row[:value_net].to_s("F")],
                   log["attributes"].values_at("comment", "received-on", "value-net")
      assert_equal({ "type" => "companies", "id" => row[:company_id].to_s }, log.dig("relationships", "company", "data"))
    end
  end

  def test_included_resources_are_the_related_ones_without_duplicates
    each_app do |app|
      page = document(app, PAGE)
      related = page["data"].flat_map { |log| log["relationships"].values.map { |one| one["data"].values_at("type", "id") } }
      included = page["included"].map { |resource| resource.values_at("type", "id") }
      assert_equal related.uniq.sort, included.sort
      attributes = page["included"].to_h { |resource| [resource["type"], resource["attributes"].keys.sort] }
      assert_equal({ "categories" => %w[name], "companies" => %w[icon name] }, attributes)
    end
  end

  def test_the_view_has_the_totals_of_each_company
    values = database { |tables| tables[:mail_logs].where(company_id: 3).select_map(:value_net) }
    each_app do |app|
      assert_equal 250, document(app, "/company-statistics").dig("meta", "record-count")
      totals = document(app, "/company-statistics/3")["data"]["attributes"]
      assert_equal [values.compact.sum, values.size], [BigDecimal(totals["value-net"]), totals["mail-logs-count"]]
      assert_equal totals["mail-logs-count"], totals["incoming-count"] + totals["outgoing-count"]
    end
  end

  def test_the_view_is_read_only
    each_app do |app|
      answer = request(app, Net::HTTP::Post.new("/company-statistics", headers.merge("Content-Type" => "application/vnd.api+json")))
      assert_includes %w[404 405], answer.code
    end
  end

  def test_invalid_pages_are_bad_requests
    %w[page[number]=0 page[number]=-1 page[number]=x page[number]=2x page[number]=1000000000000000000000000 page[size]=0 page[size]=101
       page[size]=x page[size][]=2 page[offset]=3 page[]=3 page=3].each do |query|
      each_app { |app| assert_equal "400", get(app, "/mail-logs?#{query}").code, "#{app}: #{query}" }
    end
  end

  def test_unknown_includes_and_records_are_errors
    each_app do |app|
      { "/mail-logs?include=sender" => "400", "/company-statistics?include=company" => "400",
        "/mail-logs/999999" => "404", "/mail-logs/99999999999999999999999" => "404", "/letters" => "404" }.each do |path, status|
        assert_equal status, get(app, path).code, "#{app}: #{path}"
      end
    end
  end

  def test_without_a_valid_token_there_is_only_a_401
    later = Time.now.to_i + 3600
    bad = { "missing" => nil, "basic" => "Basic #{token}", "empty" => "Bearer ", "garbage" => "Bearer a.b.c",
            "expired" => "Bearer #{token({ exp: Time.now.to_i - 60 })}", "without exp" => "Bearer #{token({ sub: "1" })}",
            "empty key" => "Bearer #{token({ exp: later }, key: "")}", "other key" => "Bearer #{token({ exp: later }, key: "x" * 40)}",
            "no algorithm" => "Bearer #{token({ exp: later }, algorithm: "none")}",
            "other algorithm" => "Bearer #{token({ exp: later }, algorithm: "HS512")}" }
    each_app { |app| bad.each { |name, header| assert_unauthorized get(app, "/mail-logs", header), "#{app}: #{name}" } }
  end

  def test_queries_of_a_warm_page
    queries = APPS.to_h do |app|
      get(app, PAGE)
      [app, selects(app) { get(app, PAGE) }]
    end
    # jsonapi-resources 0.10 reads ids before rows, for the page and for each included type, and the count.
    assert_equal({ "rails" => 7, "sequel" => 4 }, queries)
  end

  def test_the_steps_are_answered_and_differ_only_as_declared
    documents = steps["steps"].reject { |step| step["with_castellan"] }.to_h do |step|
      answer = get(step["app"], step["get"], steps["headers"]["Authorization"], host: "#{step["app"]}.test")
      assert_equal "200", answer.code, step["id"]
      [step["id"], JSON.parse(answer.body)]
    end
    assert_equal(%w[links], documents["sequel"].keys.reject { |key| documents["sequel"][key] == documents["jsonapi_resources"][key] })
  end

  private

  def each_app(&block) = APPS.each(&block)
  def running = self.class.running
  def numbers(logs) = logs.map { |log| log.dig("attributes", "number") }
  def page_number(link) = Integer(URI.decode_www_form(URI(link).query).to_h.fetch("page[number]"))

  def headers(authorization = "Bearer #{token}", host: "mail-logs.test")
    { "Host" => host, "Accept" => "application/vnd.api+json", "Authorization" => authorization }.compact
  end

  def get(app, path, *authorization, **options)
    request(app, Net::HTTP::Get.new(path.gsub("[", "%5B").gsub("]", "%5D"), headers(*authorization, **options)))
  end

  def request(app, request)
    Net::HTTP.start("127.0.0.1", running.servers.fetch(app).port) { |http| http.request(request) }
  end

  def document(app, path)
    answer = get(app, path)
    assert_equal ["200", "application/vnd.api+json"], [answer.code, answer.content_type], "#{app}: #{path}"
    JSON.parse(answer.body)
  end

  def assert_unauthorized(answer, message)
    assert_equal ["401", "application/vnd.api+json"], [answer.code, answer.content_type], message
    assert_match(/\ABearer/, answer["WWW-Authenticate"], message)
    assert_equal "401", JSON.parse(answer.body).dig("errors", 0, "status"), message
  end

  def selects(app)
    server = running.servers.fetch(app)
    before = server.log.size
    yield
    server.log[before..].scan("SELECT ").size
  end

  def database(&block)
    Sequel.connect(DatabaseUrl.new(running.url).for_sequel, &block)
  end
end

class MailLogsOnSqliteTest < Minitest::Test
  include MailLogsPromises

  def self.database_url
    directory = Dir.mktmpdir("mail-logs-")
    Minitest.after_run { FileUtils.rm_rf(directory) }
    "sqlite3:#{directory}/mail_logs.sqlite3"
  end
end

class MailLogsOnPostgresTest < Minitest::Test
  include MailLogsPromises

  def self.database_url = Castellan::TestServers.postgres_url

  def setup
    needs :postgres
  end
end

class MailLogsSetUpTest < Minitest::Test
  include MailLogsExample

  def test_setup_creates_the_same_rows_and_is_idempotent
    in_directory do |one, other|
      outputs = [one, one, other].map { |path| setup_database("sqlite:///#{path.delete_prefix("/")}").first }
      assert_equal ["now has", "is ready", "now has"], outputs.map { |output| output[/now has|is ready/] }
      assert_equal rows(one), rows(other)
    end
  end

  def test_the_multiplier_grows_the_existing_rows
    in_directory do |path|
      counts = %w[2 1].map { |multiplier| setup_database("sqlite3:#{path}", multiplier: multiplier) && rows(path).transform_values(&:size) }
      assert_equal [{ categories: 12, companies: 500, mail_logs: 10_000 }, { categories: 12, companies: 250, mail_logs: 5_000 }], counts
    end
  end

  def test_foreign_tables_are_not_changed
    in_directory do |path|
      Sequel.connect("sqlite://#{path}") { |database| database.create_table(:companies) { primary_key :id } }
      _out, error, status = setup_database("sqlite3:#{path}")
      refute_predicate status, :success?
      assert_match(/already has companies, not made by this program: name another database in DATABASE_URL/, error)
      Sequel.connect("sqlite://#{path}") { |database| assert_equal [:companies], database.tables }
    end
  end

  def test_an_invalid_environment_is_reported
    { ["sqlite3:/x", "0"] => "MULTIPLIER is \"0\": write a whole number", ["mysql2://h/d", "1"] => "write postgres://host/name or sqlite3:",
      ["postgres://127.0.0.1:#{free_port}/nowhere", "1"] => "unset DATABASE_URL to use SQLite" }.each do |(url, multiplier), message|
      _out, error, status = setup_database(url, multiplier: multiplier)
      refute_predicate status, :success?
      assert_includes error, message
    end
  end

  def test_a_short_secret_stops_the_boot
    ["", "short"].each do |secret|
      _out, error, status = run_app("sequel", "require './app'", "MAIL_LOGS_JWT_SECRET" => secret)
      refute_predicate status, :success?
      assert_includes error, "MAIL_LOGS_JWT_SECRET has #{secret.bytesize} bytes: set at least 32"
    end
  end

  # For the gemspec, Bundler itself loads the version.
  def test_the_apps_do_not_load_castellan
    in_directory do |path|
      setup_database("sqlite3:#{path}")
      { "rails" => "./config/environment", "sequel" => "./app" }.each do |app, file|
        program = "require '#{file}'; puts $LOADED_FEATURES.grep(%r{lib/castellan}).map { |feature| File.basename(feature) }"
        out, error, status = run_app(app, program, "DATABASE_URL" => "sqlite3:#{path}", "WITH_CASTELLAN" => nil)
        assert_equal [true, "version.rb\n"], [status.success?, out], error
      end
    end
  end

  private

  def in_directory
    Dir.mktmpdir("mail-logs-") { |directory| yield File.join(directory, "one.sqlite3"), File.join(directory, "other.sqlite3") }
  end

  def rows(path)
    Sequel.connect("sqlite://#{path}") do |database|
      %i[categories companies mail_logs].to_h { |table| [table, database[table].order(:id).all] }
    end
  end

  def run_app(app, program, environment)
    directory = File.join(DIRECTORY, app)
    environment = environment.merge("BUNDLE_GEMFILE" => File.join(directory, "Gemfile"))
    run_program(environment, "bundle", "exec", "ruby", "-e", program, chdir: directory)
  end
end

class MailLogsDatabaseUrlTest < Minitest::Test
  def test_one_url_is_written_for_both_libraries
    ["sqlite3:/a/b.sqlite3", "sqlite:/a/b.sqlite3", "sqlite3:///a/b.sqlite3", "sqlite:///a/b.sqlite3"].each do |url|
      database = DatabaseUrl.new(url)
      assert_equal ["sqlite3:/a/b.sqlite3", "sqlite:///a/b.sqlite3"], [database.for_active_record, database.for_sequel]
    end
  end

  def test_postgres_is_passed_on_and_its_password_not_shown
    url = DatabaseUrl.new("postgres://me:secret@host/db")
    assert_equal ["postgres://me:secret@host/db"] * 2, [url.for_active_record, url.for_sequel]
    assert_equal "postgres://me:…@host/db", url.to_s
  end

  def test_memory_relative_paths_and_other_databases_raise
    ["sqlite3::memory:", "sqlite::memory:", "sqlite3:relative.sqlite3", "mysql2://host/db", "sqlite:/"].each do |url|
      error = assert_raises(ArgumentError) { DatabaseUrl.new(url) }
      assert_includes error.message, "sqlite3:/absolute/path.sqlite3"
    end
  end
end
