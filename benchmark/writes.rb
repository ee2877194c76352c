# frozen_string_literal: true

# Compares POST of a mail log with jsonapi-resources, and measures the cost of a JSON Web Token. PostgreSQL
# only.
#
#   rake bench:writes                 # writes benchmark/writes.md; about two minutes
#   BENCH_SHORT=1 rake bench:writes   # only checks that the documents and rows are equal
#
# The POST has two relationships; jsonapi-resources runs on a minimal Rails. Calls the applications in this
# process in turns. Runs in its own bundle, benchmark/Gemfile.
require_relative "support/own_bundle"
Benchmarks::OwnBundle.enter(__FILE__)

require "etc"
require "json"
require "rack/mock_request"
require "stringio"
require_relative "support/apart"
require_relative "support/paired"
require_relative "support/same_documents"
require_relative "support/way"
require_relative "../test/support/servers"

class WritesBenchmark
  SHORT = ENV["BENCH_SHORT"] == "1"
  ROUNDS = SHORT ? 1 : 21
  EXAMPLE = File.expand_path("../examples/mail_logs", __dir__)
  TYPE = "application/vnd.api+json"
  SECRET = "s" * 32
  APP = "Castellan.app"
  SEQUEL = "Castellan.app on Sequel"
  RESOURCES = "jsonapi-resources on a slim Rails"
  TOKEN = "Castellan.app, a JSON Web Token"
  STRING = "Castellan.app, a block that compares a string"
  GOALS = [["POST of a mail log", SEQUEL, 3, RESOURCES], ["POST of a mail log", APP, 3, RESOURCES],
           ["a page of 20 mail logs", TOKEN, 0.9, STRING]].freeze

  # Columns and members whose values differ after a POST.
  OWN = %w[id number created_at updated_at].freeze

  def run
    abort "bench:writes needs PostgreSQL; install the package postgresql." unless Castellan::TestServers.available?(:postgres)
    load_applications
    @number = 1_000_000
    tables = { "POST of a mail log" => posts, "a page of 20 mail logs" => pages }
    tables.each_value { |ways| compare(ways) }
    @measured = tables.transform_values { |ways| Benchmarks::Paired.new(ways, rounds: ROUNDS, enough: SHORT ? 0 : 0.1) }
    puts page
    File.write(File.join(__dir__, "writes.md"), page) unless SHORT
    File.open(ENV.fetch("BENCH_JSON"), "a") { |file| rows.each { |row| file.puts(JSON.generate(row)) } } if ENV["BENCH_JSON"]
  end

  private

  def load_applications
    ENV.update("DATABASE_URL" => Castellan::TestServers.postgres_url, "WITH_CASTELLAN" => "1", "RAILS_ENV" => "production")
    Benchmarks::Apart.call do
      require File.join(EXAMPLE, "shared/setup")
      Setup.new.call
      nil
    end
    require File.join(EXAMPLE, "rails/config/environment")
    require_relative "writes/applications"
  end

  def posts
    [way(APP, Writes::CASTELLAN, "/mail-logs"), way(SEQUEL, Writes::SEQUEL, "/mail-logs"),
     way(RESOURCES, Rails.application, "/writes/mail-logs")]
  end

  def way(name, app, path)
    Benchmarks::Way.new(name, :json_api) do
      @number += 1
      body = JSON.generate(data: {
                             type: "mail-logs",
                             attributes: { number: @number, "in-or-out": "in", "received-on": "2026-01-31", comment: "Paid",
                                           "value-net": "12.5" },
                             relationships: { category: { data: { type: "categories", id: "1" } },
                                              company: { data: { type: "companies", id: "2" } } }
                           })
      answer(app, path, 201, method: "POST", input: body, "CONTENT_TYPE" => TYPE)
    end
  end

  def pages
    token = JWT.encode({ sub: "1", exp: Time.now.to_i + 86_400 }, SECRET, "HS256")
    { TOKEN => Writes::WITH_TOKEN, STRING => Writes::WITH_STRING }.map do |name, app|
      Benchmarks::Way.new(name, :json_api) { answer(app, "/mail-logs", 200, "HTTP_AUTHORIZATION" => "Bearer #{token}") }
    end
  end

  def answer(app, path, expected, **options)
    status, _, body = app.call(Rack::MockRequest.env_for(path, { "HTTP_ACCEPT" => TYPE, **options }))
    text = +""
    body.each { |part| text << part }
    body.close if body.respond_to?(:close)
    status == expected ? text : abort("#{path} answers #{status}: #{text[0, 500]}")
  end

  def compare(ways)
    documents = ways.map do |way|
      document = without_own(JSON.parse(way.call))
      [document, MailLog.order(:id).last.attributes.except(*OWN)]
    end
    return if documents.uniq.one?

    abort "The ways do not answer and write the same: #{documents.join("\n")[0, 2000]}"
  end

  def without_own(document)
    data = document["data"]
    return document if data.is_a?(Array)

    attributes = data["attributes"].except("number")
    relationships = data["relationships"].transform_values { |value| value.slice("data") }
    { "type" => data["type"], "attributes" => attributes, "relationships" => relationships }
  end

  def page
    ["# Writes and tokens", "",
     "Written by `rake bench:writes`: Ruby #{RUBY_VERSION}, #{Etc.nprocessors} processors, PostgreSQL (without fsync) on the same " \
     "machine, called in the process, #{ROUNDS} rounds in turns. Documents and rows were compared first.",
     "", "| goal | measured | |", "|---|---|---|", *GOALS.map { |goal| "| #{verdict(*goal)} |" },
     *@measured.flat_map { |title, paired| ["", "## #{title}", "", *table(paired)] }, ""].join("\n")
  end

  def verdict(title, way, least, other)
    ratio = @measured.fetch(title).times(way, other)
    "#{title}: #{way} ≥ #{least} × #{other} | #{ratio} × | #{ratio.verdict(least)}"
  end

  def table(paired)
    ["| way | µs | objects |", "|---|---|---|",
     *paired.names.map { |name| "| #{name} | #{(paired.ms(name) * 1000).round} | #{paired.objects(name)} |" }]
  end

  def rows
    @measured.flat_map do |title, paired|
      paired.names.map { |name| { benchmark: "writes", work: title, way: name, ms: paired.ms(name), objects: paired.objects(name) } }
    end
  end
end

WritesBenchmark.new.run
