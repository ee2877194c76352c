# frozen_string_literal: true

require "test_helper"
require "tmpdir"

# Castellan in real Rails applications, each in a process of its own.
class RailtieTest < Minitest::Test
  FILES = {
    "app/models/article.rb" => "class Article < ActiveRecord::Base; end\n",
    "config/database.yml" => %w[development test production].map { |name|
      "#{name}: { adapter: sqlite3, database: library.sqlite3 }\n"
    }.join,
    "app/resources/article_resource.rb" => "class ArticleResource < Castellan::Resource\n  model Article\n  attributes :title\nend\n",
    "config/routes.rb" => "Rails.application.routes.draw { get '/articles', to: 'articles#index' }\n",
    "app/controllers/articles_controller.rb" => <<~RUBY
      class ArticlesController < ActionController::API
        rescue_from(Castellan::BadRequest) { |error| render json: { errors: [error.to_h] }, status: error.status }

        def index
          document = ArticleResource.document(query: request.query_parameters)
          render json: document if stale?(**document.validators)
        end
      end
    RUBY
  }.freeze

  BOOT = <<~RUBY
    require "rails"
    require "active_record/railtie"
    require "action_controller/railtie"
    require "castellan"
    require "rack/mock_request"
    ENV["RAILS_ENV"] ||= "test"
    class LibraryApp < Rails::Application
      config.root = Dir.pwd
      config.load_defaults Rails::VERSION::STRING.to_f
      config.active_record.sqlite3_production_warning = false if Rails.version < "7.2"
      config.eager_load = ENV["EAGER"] == "1"
      config.enable_reloading = ENV["EAGER"] != "1"
      config.secret_key_base = "a" * 64
      config.hosts.clear
      config.logger = Logger.new($stdout)
      config.log_level = :warn
      config.active_record.maintain_test_schema = false
    end
    def get(path, **headers)
      Rack::MockRequest.new(Rails.application).get(path, headers)
    end
    def boot
      Rails.application.initialize!
    end
    def table
      require "sqlite3"
      database = SQLite3::Database.new("library.sqlite3")
      database.execute("CREATE TABLE articles (id integer PRIMARY KEY, title text)")
      database.execute("INSERT INTO articles VALUES (1, 'First'), (2, 'Second <b>')")
      database.close
    end
  RUBY

  def test_a_controller_renders_a_document_and_responds_with_304
    output = run_app(<<~RUBY)
      table; boot
      first = get("/articles")
      p first.status, first.media_type, first.body
      p get("/articles", "HTTP_IF_NONE_MATCH" => first["etag"]).status
      bad = get("/articles?include=nope")
      p bad.status, JSON.parse(bad.body)["errors"][0]["source"].to_a
    RUBY
    status, media_type, body, *rest = output.lines.map(&:chomp)
    assert_equal ["200", '"application/json"', "304", "400", '[["parameter", "include"]]'], [status, media_type, *rest]
    assert_includes body.undump, '{"type":"articles","id":"2","attributes":{"title":"Second \u003cb\u003e"}}'
  end

  def test_a_mounted_app_responds_as_json_api_requires
    output = run_app(<<~RUBY, files: MOUNTED)
      table; boot
      ["/api/articles", "/api/articles/9", "/api/nothing", "/api/articles?include=nope"].each do |path|
        response = get(path)
        p [response.status, response.headers["content-type"], JSON.parse(response.body).keys]
      end
      p get("/api/articles", "HTTP_ACCEPT" => "application/vnd.api+json; charset=utf-8").status
    RUBY
    type = "application/vnd.api+json"
    assert_equal [[200, type, ["data"]], [404, type, ["errors"]], [404, type, ["errors"]], [400, type, ["errors"]], 406],
                 output.lines.map { |line| JSON.parse(line) }
  end

  def test_routes_mount_an_app_before_its_table_exists
    output = run_app("boot; table; p get('/api/articles').status", files: MOUNTED)
    assert_equal "200", output.lines.last.chomp
  end

  def test_a_wrong_declaration_of_a_mounted_app_fails_at_boot
    wrong = { "app/resources/article_resource.rb" => "class ArticleResource < Castellan::Resource\n  model Article\n  attributes :titel\nend\n" }
    code = "table; begin; boot; rescue Castellan::DeclarationError => error; puts error.message; end"
    output = run_app(code, files: { **MOUNTED, **wrong }, "EAGER" => "1") # Rails 8 loads routes with the first request elsewhere
    assert_includes output, "articles has no column titel (did you mean title?)"
  end

  MOUNTED = { "config/routes.rb" => <<~RUBY }.freeze
    Rails.application.routes.draw do
      mount Castellan.app { resource ArticleResource } => "/api"
      post "/echo", to: "articles#echo"
    end
  RUBY

  def test_integration_tests_parse_the_body_and_requests_their_parameters
    output = run_app(<<~RUBY, files: MOUNTED)
      table; boot
      ArticlesController.define_method(:echo) { render json: params[:data].to_unsafe_h, content_type: "application/vnd.api+json" }
      require "action_dispatch/testing/integration"
      class Api < ActionDispatch::IntegrationTest; end
      session = ActionDispatch::Integration::Session.new(Rails.application)
      session.get("/api/articles")
      results = [session.response.parsed_body.is_a?(Hash), session.response.parsed_body["data"].first["attributes"]]
      session.post("/echo", params: { data: { type: "articles" } }, as: :jsonapi)
      results << session.response.parsed_body
      session.post("/echo", params: "{broken", headers: { "CONTENT_TYPE" => "application/vnd.api+json" })
      puts JSON.generate([*results, session.response.status])
    RUBY
    assert_equal [true, { "title" => "First" }, { "type" => "articles" }, 400], JSON.parse(output.lines.last)
  end

  def test_a_mounted_app_is_part_of_the_application
    output = run_app(<<~RUBY, files: WRITING, "RAILS_ENV" => "production")
      LibraryApp.config.hosts << "library.example"
      LibraryApp.config.filter_parameters += [:title]
      LibraryApp.config.log_level = :info
      log = StringIO.new
      LibraryApp.config.logger = ActiveSupport::TaggedLogging.new(Logger.new(log))
      table; boot
      require "action_dispatch/testing/integration"
      class Api < ActionDispatch::IntegrationTest; end
      session = Api.new("x").tap { |test| test.send(:open_session) }
      session.host! "library.example"
      session.get("/api/articles?filter[title]=First&page[size]=1")
      results = [session.jsonapi_response["data"].size, session.jsonapi_response["links"]["first"]]
      session.post("/api/articles", params: { data: { type: "articles", attributes: { title: "New" } } }, as: :jsonapi)
      results.push(session.response.status, session.response.headers["location"])
      session.post("/api/articles", params: { data: { type: "articles", attributes: { title: "Broken" } } }, as: :jsonapi)
      results.push(session.response.status, Article.count)
      session.host! "evil.example"
      session.get("/api/articles")
      results << session.response.status
      results << (session.jsonapi_response rescue $!.message[/\\Athe response is no JSON:API document/])
      puts JSON.generate([*results, log.string[/Started GET.*/], log.string.include?("First")])
    RUBY
    *results, line, leaked = JSON.parse(output.lines.last)
    assert_equal [1, "/api/articles?filter%5Btitle%5D=First&page%5Bnumber%5D=1&page%5Bsize%5D=1", 201, "/api/articles/3", 500, 3, 403,
                  "the response is no JSON:API document"], results
    assert_includes line, "filter[title]=[FILTERED]"
    refute leaked
  end

  WRITING = { "config/routes.rb" => <<~RUBY, "app/resources/article_resource.rb" => <<~RESOURCE }.freeze
    Rails.application.routes.draw { mount Castellan.app { resource ArticleResource } => "/api" }
  RUBY
    class ArticleResource < Castellan::Resource
      model Article
      attributes :title
      writable :title
      filter(:title) { |articles, titles| articles.where(title: titles) }
      page size: 10

      def create(attributes, viewer)
        super.tap { raise "broken" if attributes[:title] == "Broken" }
      end
    end
  RESOURCE

  def test_a_registration_of_the_application_stays
    files = { "config/initializers/mime_types.rb" => <<~RUBY }
      Mime::Type.register "application/vnd.api+json", :api
      ActionDispatch::Request.parameter_parsers = ActionDispatch::Request.parameter_parsers.merge(api: ->(text) { { "own" => text } })
    RUBY
    output = run_app(<<~RUBY, files: files)
      table; boot
      p Mime::Type.lookup("application/vnd.api+json").symbol, Mime[:jsonapi], ActionDispatch::Request.parameter_parsers[:api].call("x").to_a
    RUBY
    assert_equal [":api", "nil", '[["own", "x"]]'], output.lines(chomp: true)
  end

  def test_a_clients_mistake_is_not_a_server_error
    output = run_app(<<~RUBY, "RAILS_ENV" => "production")
      table; boot
      class PlainController < ActionController::API
        def index = render(json: ArticleResource.document(query: request.query_parameters))
      end
      Rails.application.routes.draw { get "/plain", to: "plain#index" }
      p get("/plain").status, get("/plain?include=nope").status
    RUBY
    assert_equal %w[200 400], output.lines(chomp: true).grep(/\A\d+\z/), output
  end

  def test_the_middleware_watches_in_development_alone
    code = "table; boot; puts Rails.application.middleware.map(&:name).include?('Castellan::Detect::Middleware'), get('/articles').status"
    assert_equal "true\n200\n", run_app(code, "RAILS_ENV" => "development")
    assert_equal "false\n200\n", run_app(code, "RAILS_ENV" => "production")
    assert_equal "false\n200\n", run_app(code, "RAILS_ENV" => "development", "CASTELLAN" => "off")
    assert_equal "false\n200\n", run_app("Rails.application.config.castellan.detection = false; #{code}", "RAILS_ENV" => "development")
  end

  def test_in_production_a_configured_detector_sums_up_repetitions
    output = run_app(<<~RUBY, "RAILS_ENV" => "production")
      table
      Rails.application.config.castellan.detection = { sample: 1, min_ms: 0, report: ->(finding, endpoint) { puts finding.kind, endpoint } }
      boot
      ArticlesController.define_method(:index) { render json: (1..6).map { |id| Article.find_by(id: id)&.title } }
      2.times { get("/articles") }
      entry = Rails.configuration.castellan.detector.findings.first
      p entry.times, entry.queries
    RUBY
    lines = output.lines.map(&:chomp)
    assert_includes lines.first, "GET articles#index: n_plus_one: 6 queries"
    assert_equal ["n_plus_one", "GET articles#index", "2", "12"], lines.drop(1)
  end

  def test_one_line_in_an_initializer_turns_off_the_tools_of_development
    line = "Rails.configuration.castellan.detection = Rails.configuration.castellan.profile = false\n"
    files = { "config/initializers/castellan.rb" => line }
    code = "table; boot; puts Rails.application.middleware.map(&:name).grep(/Castellan/).size, get('/articles').status"
    assert_equal "2\n200\n", run_app(code, "RAILS_ENV" => "development")
    assert_equal "0\n200\n", run_app(code, files: files, "RAILS_ENV" => "development")
  end

  def test_an_initializer_configures_everything_in_production
    files = { "config/initializers/castellan.rb" => <<~RUBY }
      Rails.application.configure do
        config.castellan.cache_store = Castellan::Store::MemoryStore.new
        config.castellan.detection = { sample: 1.0 }
        config.castellan.profile = { secret: "s" * 32 }
        config.castellan.together = false
        config.castellan.verify = { rate: 1.0, report: ->(difference) { puts difference } }
      end
    RUBY
    output = run_app(<<~RUBY, files: files, "RAILS_ENV" => "production")
      table; boot
      p Castellan.together, Castellan.keeper.class, Rails.application.middleware.map(&:name).grep(/Castellan/), Rails.configuration.castellan.detector.class
      p get("/articles").status
    RUBY
    middleware = '["Castellan::Profile::Middleware", "Castellan::Verify::Middleware"]'
    assert_equal ["false", "Castellan::Keeper", middleware, "Castellan::Detect::Production", "200"], output.lines(chomp: true)
  end

  HTTP_CACHED = {
    "app/controllers/articles_controller.rb" => <<~RUBY
      class ArticlesController < ActionController::Base
        skip_forgery_protection

        def index
          session[:seen] = true if params[:session]
          expires_in 5.minutes, public: true unless params[:private]
          render json: { count: (COUNT[0] += 1) } if stale?(etag: params[:tag] || "one", public: !params[:private])
        end

        def create = head(:no_content)
      end
      COUNT = [0]
    RUBY
  }.freeze

  def test_the_http_cache_responds_before_the_router
    output = run_app(<<~RUBY, files: HTTP_CACHED)
      LibraryApp.config.castellan.http_cache = { except: ["/admin"] }
      LibraryApp.config.force_ssl = true
      LibraryApp.config.session_store :cookie_store, key: "_library"
      boot
      Rails.application.routes.draw { resources :articles, only: %i[index create] }
      ask = lambda do |path, method = "GET", **fields|
        response = Rack::MockRequest.new(Rails.application).request(method, "https://example.org" + path, fields)
        [response.status, response.body, response["cache-status"], response["set-cookie"] ? "cookie" : nil]
      end
      3.times { p ask["/articles"] }
      p ask["/articles", "HTTP_COOKIE" => "_library=x"]
      2.times { p ask["/articles?private=1"] }
      2.times { p ask["/articles?session=1"] }
      p ask["/articles", "POST"]
      p ask["/articles"]
      p Rack::MockRequest.new(Rails.application).get("http://example.org/articles").status
      names = Rails.application.middleware.map(&:name)
      p %w[ActionDispatch::SSL Castellan::HTTPCache ActionDispatch::Executor ActionDispatch::Cookies] & names
      p Rails.application.middleware.find { |middleware| middleware.name == "Castellan::HTTPCache" }.args
    RUBY
    miss, hit = "Castellan; fwd=uri-miss; stored", "Castellan; hit; ttl=\\d+"
    [
      /^\[200, .*:1.*, "#{miss}", nil\]/, *[/^\[200, .*:1.*, "#{hit}", nil\]/] * 3,
      /^\[200, .*:2.*, "Castellan; fwd=uri-miss", nil\]/, /^\[200, .*:3.*, "Castellan; fwd=uri-miss", nil\]/,
      /^\[200, .*:4.*, "Castellan; fwd=uri-miss", "cookie"\]/, /^\[200, .*:5.*, "Castellan; fwd=uri-miss", "cookie"\]/,
      /^\[204, .*method/, /^\[200, .*:6.*, "#{miss}", nil\]/, /^301/,
      /"ActionDispatch::SSL", "Castellan::HTTPCache", "ActionDispatch::Executor", "ActionDispatch::Cookies"/, /except/
    ].zip(output.lines.last(13)) { |expected, line| assert_match expected, line, output }
  end

  STREAMED = {
    "app/controllers/articles_controller.rb" => <<~RUBY
      class ArticlesController < ActionController::API
        MADE = [0]
        def index
          expires_in 5.minutes, public: true
          response.last_modified = Time.now # Rack::ETag reads bodies without it
          self.response_body = Enumerator.new { |body| 3.times { |number| body << "\#{number},"; MADE[0] += 1 } }
        end

        def show
          fresh_when Struct.new(:updated_at, :cache_key_with_version).new(20.days.ago, "post"), public: true
        end
      end
    RUBY
  }.freeze

  def test_the_http_cache_sends_an_enumerator_while_it_is_made_and_stores_it
    output = run_app(<<~RUBY, files: STREAMED)
      LibraryApp.config.castellan.http_cache = true
      boot
      made = ArticlesController::MADE
      _, _, body = Rails.application.call(Rack::MockRequest.env_for("/articles"))
      seen = []
      body.each { |chunk| seen << [chunk, made[0]] }
      body.close
      p seen
      p get("/articles").then { |response| [response.body, response["cache-status"][/hit/]] }
      Rails.application.routes.draw { get "/article", to: "articles#show" }
      p Array.new(2) { get("/article")["cache-status"][/hit|stale/] }
    RUBY
    assert_equal ['[["0,", 0], ["1,", 1], ["2,", 2]]', '["0,1,2,", "hit"]', '[nil, "stale"]'], output.lines.last(3).map(&:chomp)
  end

  LIVE = {
    "app/controllers/articles_controller.rb" => <<~RUBY
      class ArticlesController < ActionController::Base
        include ActionController::Live

        def index
          expires_in 5.minutes, public: true
          response.headers["Content-Length"] = "8"
          response.stream.write("half")
          raise "lost" if FAILS[0]

          response.stream.write("half")
        ensure
          response.stream.close
        end

        def show
          http_cache_forever(public: true) do
            send_stream(filename: "a.txt") do |stream|
              stream.write("half")
              raise "lost" if FAILS[0]
            end
          end
        end
      end
      FAILS = [true]
    RUBY
  }.freeze

  # Rails closes the stream of both in the same way, and deletes Content-Length.
  def test_the_http_cache_stores_no_live_stream_of_an_action_that_failed
    output = run_app(<<~RUBY, files: LIVE)
      LibraryApp.config.castellan.http_cache = true
      boot
      Rails.application.routes.draw { resources :articles, only: %i[index show] }
      failed = %w[/articles /articles/1].map { |path| [get(path).body, get(path)["cache-status"][/hit|miss/]] }
      FAILS[0] = false
      p failed, %w[/articles /articles/1].map { |path| [get(path).body, get(path)["cache-status"][/hit|miss/]] }
    RUBY
    assert_equal ['[["half", "miss"], ["half", "miss"]]', '[["halfhalf", "hit"], ["half", "hit"]]'], output.lines.last(2).map(&:chomp)
  end

  FORMATS = {
    "app/controllers/articles_controller.rb" => <<~RUBY
      class ArticlesController < ActionController::Base
        def index
          expires_in 5.minutes, public: true
          respond_to do |format|
            format.html { render html: "page" }
            format.json { render json: { article: 1 } }
          end
        end
      end
    RUBY
  }.freeze

  # Rails sends Vary: Accept with the JSON alone.
  def test_the_http_cache_tells_the_formats_of_one_url_apart
    output = run_app(<<~RUBY, files: FORMATS)
      LibraryApp.config.castellan.http_cache = true
      boot
      browser, json = { "HTTP_ACCEPT" => "text/html,*/*;q=0.8" }, { "HTTP_ACCEPT" => "application/json" }
      script = { "HTTP_ACCEPT" => "application/json,*/*", "HTTP_X_REQUESTED_WITH" => "XMLHttpRequest" }
      asked = [browser, json, browser, json, script, script.except("HTTP_X_REQUESTED_WITH")]
      asked.map! { |fields| get("/articles", **fields) }
      puts JSON.generate(asked.map { |response| [response.body, response["cache-status"].include?("hit")] })
    RUBY
    page, article = "page", '{"article":1}'
    expected = [[page, false], [article, false], [page, true], [article, true], [article, false],
                [page, false]]
    assert_equal expected, JSON.parse(output.lines.last), output
  end

  def test_an_invalid_value_raises_with_the_correction
    { "http_cache = { store: Rails.cache }" => "Rails.cache is nil until config/initializers are loaded",
      "detection = true" => "detection must be a Hash of options, or false, got true; write for example " \
                            "config.castellan.detection = { sample: 0.1 }",
      "profile = 'on'" => "profile must be a Hash of options, or false, got \"on\"", "cache_store = :memory_store" =>
      "cache_store must be a store or Rails.cache, got :memory_store", "revision = 7" => "revision must be a String or nil, got 7",
      "detection = { smaple: 1 }" => "detection has no option :smaple (did you mean sample?)",
      "http_cache = { max_bodi: 1 }" => "http_cache has no option :max_bodi (did you mean max_body?)",
      "verify = { 'rate' => 1 }" => "verify has no option \"rate\" (write the Symbol :rate)",
      "verify = 0.1" => "verify must be a Hash of options, or false, got 0.1",
      "together = 1" => "Castellan.together must be true or false, got 1", "profle = {}" => "profle=" }.each do |line, message|
      output = run_app("begin; Rails.application.config.castellan.#{line}; rescue StandardError => error; puts error.message; end")
      assert_includes output, message
    end
  end

  def test_in_development_the_middleware_takes_options
    output = run_app(<<~RUBY, "RAILS_ENV" => "development")
      table
      Rails.application.config.castellan.detection = { json_lines: "findings.jsonl" }
      boot
      ArticlesController.define_method(:index) { render json: (1..6).map { |id| Article.find_by(id: id)&.title } }
      get("/articles")
      puts JSON.parse(File.read("findings.jsonl")).values_at("path", "kind", "count")
    RUBY
    assert_equal %w[/articles n_plus_one 6], output.lines.last(3).map(&:chomp)
  end

  def test_an_option_of_the_detector_that_belongs_to_another_environment_is_named_at_its_line
    options = { "development" => ["{ sample: 0.1 }", "{ report: ->(finding, endpoint) {} }"], "production" => ["{ json_lines: 'x' }"] }
    options.each do |environment, values|
      values.each do |value|
        output = run_app(<<~RUBY, "RAILS_ENV" => environment)
          table
          begin
            Rails.application.config.castellan.detection = #{value}
            boot
          rescue Castellan::ConfigurationError => error
            puts error.message
          end
        RUBY
        assert_includes output, "config.castellan.detection has no option :#{value[/\w+/]} (there is: "
        assert_includes output, "; in the environment #{environment}, it takes those of Castellan::Detect::"
      end
    end
  end

  def test_a_wrong_declaration_fails_at_boot_where_code_is_loaded_at_boot
    wrong = { "app/resources/article_resource.rb" => "class ArticleResource < Castellan::Resource\n  model Article\n  attributes :titel\nend\n" }
    code = "table; begin; boot; rescue Castellan::DeclarationError => error; puts error.message; end"
    assert_match(/ArticleResource attribute :titel: articles has no column titel \(did you mean title\?\) \(.*article_resource\.rb:3\)/,
                 run_app(code, files: wrong, "EAGER" => "1"))
    assert_empty run_app(code, files: wrong)
    assert_empty run_app(code, files: wrong, "EAGER" => "1", "CASTELLAN" => "off")
  end

  def test_a_missing_database_does_not_stop_the_boot
    output = run_app("boot; table; puts get('/articles').status", "EAGER" => "1")
    assert_includes output, "castellan: resources are checked with their first document, because the database does not answer"
    assert_equal "200", output.lines.last.chomp
  end

  FRESH = {
    "app/models/article.rb" => "class Article < ActiveRecord::Base\n  has_many :notes\nend\n",
    "app/models/note.rb" => "class Note < ActiveRecord::Base; end\n",
    "app/resources/note_resource.rb" => "class NoteResource < Castellan::Resource\n  model Note\n  attributes :text\nend\n",
    "app/resources/article_resource.rb" => <<~RUBY,
      class ArticleResource < Castellan::Resource
        model Article
        attributes :title
        has_many :notes
        self_links
      end
    RUBY
    "config/routes.rb" => <<~RUBY,
      Rails.application.routes.draw do
        mount Castellan.app { resource ArticleResource; resource NoteResource } => "/api"
        mount Castellan.app { resource NoteResource } => "/notes"
      end
    RUBY
    "db/migrate/20260101000000_create_articles.rb" => <<~RUBY
      class CreateArticles < ActiveRecord::Migration[7.1]
        def change
          create_table(:articles, primary_key: :number) { |table| table.text :title }
          reversible { |step| step.up { Article.create!(title: "of the migration") } }
        end
      end
    RUBY
  }.freeze
  NOTES = <<~RUBY
    class CreateNotes < ActiveRecord::Migration[7.1]
      def change
        create_table(:notes) { |table| table.integer :article_id }
        add_column :notes, :text, :text
        reversible { |step| step.up { Note.create!(article_id: Article.first.number, text: "new") } }
      end
    end
  RUBY

  # The routes, and so the resources, are loaded in each task, and eagerly before Rails 8.
  def test_a_mounted_app_does_not_stop_the_tasks_of_the_database
    task = ->(name) { "$stderr = $stdout; boot; Rails.application.reload_routes!; Rails.application.load_tasks; Rake::Task['#{name}'].invoke; " }
    read = "puts get('/api/articles').body, get('/notes/notes').status, get('/api/articles/1/notes').body"
    in_app(files: FRESH) do |run|
      %w[0 1].each do |eager|
        FileUtils.rm_f(["library.sqlite3", "db/schema.rb", "db/migrate/20260102000000_create_notes.rb"]) # Rails 8 loads the schema
        assert_match(/checked with the first request, because/, run.call(task.call("db:create"), "EAGER" => eager))
        first = run.call("#{task.call("db:migrate")}puts Article.primary_key", "EAGER" => eager)
        assert_equal "number", first.lines.last.chomp
        File.write("db/migrate/20260102000000_create_notes.rb", NOTES)
        migrated = run.call("#{task.call("db:migrate")}#{read}", "EAGER" => eager)
        assert_includes migrated, "because migrations are pending"
        assert_includes migrated, '"id":"1","attributes":{"title":"of the migration"}'
        assert_includes migrated, '"attributes":{"text":"new"}'
        assert_equal migrated.lines.last(3), run.call("boot; Rails.application.reload_routes!; #{read}", "EAGER" => eager).lines.last(3)
      end
    end
  end

  def test_a_migration_of_a_wrong_name_is_not_reported_as_a_database_that_is_down
    output = run_app("$stderr = $stdout; boot; Rails.application.reload_routes!",
                     files: { **FRESH, "db/migrate/20260102000000_Notes.rb" => "" })
    assert_includes output, "with the first request, because a migration cannot be read: Illegal name for migration file: "
  end

  # New code may start before its migration, which another process runs.
  def test_a_mounted_app_answers_503_until_its_migration_has_run
    bare = "class CreateNotes < ActiveRecord::Migration[7.1]\n  def change = create_table(:notes) { |t| t.integer :article_id }\nend\n"
    text = "class AddText < ActiveRecord::Migration[7.1]\n  def change = add_column(:notes, :text, :text)\nend\n"
    in_app(files: { **FRESH, "db/migrate/20260102000000_create_notes.rb" => bare }) do |run|
      run.call("boot; Rails.application.load_tasks; Rake::Task['db:migrate'].invoke")
      File.write("db/migrate/20260103000000_add_text.rb", text)
      output = run.call(<<~RUBY)
        $stderr = $stdout
        boot; Rails.application.reload_routes!
        2.times { puts get("/notes/notes").then { |response| [response.status, response["retry-after"]].inspect } }
        SQLite3::Database.new("library.sqlite3").execute_batch("ALTER TABLE notes ADD text TEXT; " \
                                                               "INSERT INTO schema_migrations VALUES ('20260103000000')")
        puts get("/notes/notes").status
      RUBY
      assert_equal %([503, "1"]\n[503, "1"]\n200\n), output.lines.last(3).join, output
      assert_equal 1, output.scan("castellan: each request gets a 503, because migrations are pending: NoteResource").size, output
    end
  end

  def test_a_mounted_app_serves_a_database_that_was_created_after_it
    needs :postgres
    url = Castellan::TestServers.postgres_url.sub(%r{[^/?]+(?=\z|\?)}) { |name| "#{name}_later" }
    output = run_app(<<~RUBY, files: { **FRESH, "db/migrate/20260102000000_create_notes.rb" => NOTES }, "DATABASE_URL" => url)
      $stderr = $stdout; boot; Rails.application.reload_routes!; Rails.application.load_tasks
      ActiveRecord::Base.connection_handler.clear_all_connections!
      p get("/api/articles").status
      late = Castellan.app { resource ArticleResource }
      cost = -> { puts "cost: \#{late.cost(Rack::Request.new(Rack::MockRequest.env_for("/articles?include=notes")))}" }
      cost.call
      %w[db:create db:migrate].each { |name| Rake::Task[name].invoke }
      puts get("/api/articles").body
      cost.call
      ActiveRecord::Base.connection_handler.clear_all_connections!
      Rake::Task["db:drop"].invoke
    RUBY
    assert_includes output, "checked with the first request, because there is no database"
    assert_equal "503", output[/^\d+$/]
    assert_equal %w[1 2], output.scan(/^cost: (\d+)$/).flatten
    assert_includes output, '"id":"1","attributes":{"title":"of the migration"}'
  end

  # Also without the table's own database, which `db:create` is to create.
  def test_a_mounted_app_does_not_stop_the_creation_of_a_second_database
    needs :postgres
    url = Castellan::TestServers.postgres_url.sub(%r{[^/?]+(?=\z|\?)}) { |name| "#{name}_second" }
    files = { **MOUNTED, "app/models/article.rb" => "class Article < SecondRecord; end\n", "config/database.yml" => <<~YAML }
      test:
        primary: { adapter: sqlite3, database: library.sqlite3 }
        second: { url: "#{url}" }
    YAML
    files["app/models/second_record.rb"] = <<~RUBY
      class SecondRecord < ActiveRecord::Base
        self.abstract_class = true
        connects_to database: { writing: :second }
      end
    RUBY
    %w[0 1].each do |eager|
      output = run_app(<<~RUBY, files: files, "EAGER" => eager)
        $stderr = $stdout; boot; Rails.application.reload_routes!; Rails.application.load_tasks
        p get("/api/articles").status
        Rake::Task["db:create"].invoke
        Article.connection.create_table(:articles) { |table| table.text :title }
        p get("/api/articles").status
        ActiveRecord::Base.connection_handler.clear_all_connections!(:all)
        Rake::Task["db:drop"].invoke
      RUBY
      assert_includes output, "checked with the first request, because a database does not answer"
      assert_equal %w[503 200], output.scan(/^\d+$/)
    end
  end

  # Else Rails had no routes until the next change.
  def test_a_wrong_declaration_leaves_the_other_routes_while_code_reloads
    wrong = { "app/resources/article_resource.rb" => "class ArticleResource < Castellan::Resource\n  model Article\n  attributes :titel\nend\n" }
    wrong["config/routes.rb"] = <<~RUBY
      Rails.application.routes.draw do
        mount Castellan.app { resource ArticleResource } => "/api"
        get "/other", to: ->(_env) { [200, {}, []] }
      end
    RUBY
    output = run_app(<<~RUBY, files: wrong)
      $stderr = $stdout; Rails.application.config.log_level = :fatal; Rails.application.config.consider_all_requests_local = true; table; boot
      2.times { puts get("/api/articles").then { |response| [response.status, response.body[/did you mean title/]].join(" ") } }
      p get("/other").status
      File.write("app/resources/article_resource.rb", File.read("app/resources/article_resource.rb").sub("titel", "title"))
      Rails.application.reloader.reload!
      p get("/api/articles").status
    RUBY
    assert_includes output, "because there is an error, and Rails reloads code: ArticleResource attribute :titel"
    assert_equal ["500 did you mean title", "500 did you mean title", "200", "200"], output.lines.last(4).map(&:chomp)
  end

  # `rails routes` prints it.
  def test_an_app_that_is_inspected_shows_no_key
    key = "k" * 40
    app = Castellan.app { authenticate(jwt: { key: key, algorithms: %w[HS256] }) }
    assert_equal "#<Castellan::Serve::App >", app.inspect
    refute_includes app.instance_variable_get(:@authentication).inspect, key
  end

  def test_nothing_is_loaded_for_the_check_of_an_application_without_resources
    files = FILES.transform_values { "" }.merge(FILES.slice("config/database.yml"))
    files.update("app/models/article.rb" => "class Article; end", "app/resources/article_resource.rb" => "ArticleResource = 1",
                 "app/controllers/articles_controller.rb" => "ArticlesController = 1")
    assert_equal "\"castellan/document\"\n",
                 run_app("Rails.application.initialize!; p Castellan.autoload?(:Document)", files: files, "EAGER" => "1")
  end

  KEPT = {
    "app/models/loud.rb" => "module Loud; def self.call(text) = text.upcase; end\n",
    "app/resources/article_resource.rb" => <<~RUBY,
      class ArticleResource < Castellan::Resource
        model Article
        attribute(:title, columns: [:title], pure: true) { |row| Loud.call(row.title) }
        cache :exact
      end
    RUBY
    "config/initializers/castellan.rb" => <<~RUBY
      Castellan.keep(store: Castellan::Store::DirectoryStore.new(Rails.root.join("tmp/store")), versions: Class.new { def current(_) = "v" }.new)
    RUBY
  }.freeze

  TYPED = {
    "app/resources/article_resource.rb" => <<~RUBY
      class ArticleResource < Castellan::Resource
        model Article
        attributes :title
        cache :exact
      end
    RUBY
  }.freeze
  TYPED_BOOT = <<~RUBY
    require "sqlite3"
    def articles(type, sql)
      create = "CREATE TABLE articles (id integer PRIMARY KEY, title \#{type}); INSERT INTO articles VALUES (1, '007'); "
      SQLite3::Database.new("library.sqlite3").tap { |database| database.execute_batch(create + sql) }.close
    end
    LibraryApp.config.castellan.cache_store = Castellan::Store::DirectoryStore.new("store")
  RUBY

  def test_a_helper_that_was_edited_is_served_by_the_next_deployment
    { {} => %w[FIRST first], { "GIT_REV" => "one" } => %w[FIRST FIRST] }.each do |environment, expected|
      in_app(files: KEPT) do |run|
        served = %w[upcase downcase].map do |method|
          File.write("app/models/loud.rb", "module Loud; def self.call(text) = text.#{method}; end\n")
          run.call("table unless File.exist?('library.sqlite3'); boot; puts get('/articles').body", "EAGER" => "1", **environment)[/first/i]
        end
        assert_equal expected, served
      end
    end
  end

  def test_the_revision_of_the_configuration_is_that_of_the_keys
    in_app(files: KEPT) do |run|
      code = "table unless File.exist?('library.sqlite3'); LibraryApp.config.castellan.revision = ENV['GIVEN']; boot; " \
             "puts get('/articles')['etag']"
      tags = %w[one one two].map { |given| run.call(code, "GIVEN" => given) }
      assert_equal tags[0], tags[1]
      refute_equal tags[0], tags[2]
    end
  end

  # If `db:migrate` runs after a deployment, processes cast by the old type until they are restarted. A migration of a branch
  # that is merged later is older than the last one.
  def test_a_process_that_started_before_a_migration_writes_nothing_for_those_after_it
    read = %(puts get("/articles").body[/"title":("?\\w+"?)/, 1])
    old = <<~RUBY
      articles("integer", "CREATE TABLE schema_migrations (version); INSERT INTO schema_migrations VALUES ('20260201000000')")
      boot
      get("/articles")
      SQLite3::Database.new("library.sqlite3").tap { |database| database.execute("DROP TABLE articles") }.close
      articles("text", "INSERT INTO schema_migrations VALUES ('20260101000000')")
      Castellan::Versions::ExactVersions.new(ActiveRecord::Base).install(%w[articles])
      #{read}
    RUBY
    in_app(files: TYPED) do |run|
      served = [old, "boot; #{read}", "boot; #{read}"].map do |code|
        run.call(TYPED_BOOT + code, "EAGER" => "1", "GIT_REV" => "one").lines.last.chomp
      end
      assert_equal ["7", '"007"', '"007"'], served
    end
  end

  def test_nothing_is_kept_across_a_reload_in_development
    output = run_app(<<~'RUBY', files: KEPT, "RAILS_ENV" => "development")
      table; boot
      seen = %w[one two].map do |text|
        File.write("app/models/loud.rb", "module Loud; def self.call(_text) = '#{text}'; end\n")
        Rails.application.reloader.reload!
        first, second = Array.new(2) { get("/articles") }
        abort("not kept") unless first["etag"] == second["etag"]
        [first.body[/"title":"(\w+)"/, 1], first["etag"]]
      end
      p seen.map(&:first), seen.map(&:last).uniq.size
    RUBY
    assert_equal "[\"one\", \"two\"]\n2\n", output[/^\[.*/m]
  end

  def test_a_resource_that_is_reloaded_has_new_plans_and_leaves_nothing
    output = run_app(<<~'RUBY')
      table; boot
      Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: Class.new { def current(_) = "v" }.new)
      names = %w[one two].map do |name|
        File.write("app/resources/article_resource.rb", "class ArticleResource < Castellan::Resource\n  model Article\n  attribute(:#{name}, columns: :title) { |row| row.title }\n  cache :exact\nend\n")
        Rails.application.reloader.reload!
        JSON.parse(get("/articles").body)["data"][0]["attributes"].keys
      end
      p names
      30.times { Rails.application.reloader.reload!; get("/articles") }
      GC.start
      puts ObjectSpace.each_object(Class).count { |known| known < Castellan::Resource } < 15
    RUBY
    assert_equal "[[\"one\"], [\"two\"]]\ntrue\n", output
  end

  # The Railtie uses these of Rails. An upgrade that removes one fails here, by name.
  def test_the_public_interface_of_rails_that_is_used
    output = run_app(<<~RUBY)
      p Castellan::Railtie.respond_to?(:initializer), Rails.env.respond_to?(:development?), Rails.respond_to?(:logger)
      p Castellan::Railtie.config.respond_to?(:after_initialize), Rails.application.config.respond_to?(:eager_load), Rails.application.config.middleware.respond_to?(:use)
      p ActionController::API.instance_method(:stale?).parameters.map(&:last), ActionController::Renderers::RENDERERS.include?(:json)
    RUBY
    assert_equal 6, output.lines.first(6).grep(/true/).size
    assert_equal ["[:object, :freshness_kwargs]", "true"], output.lines.last(2).map(&:chomp)
  end

  private

  def run_app(code, files: {}, **environment)
    in_app(files: files) { |run| run.call(code, **environment) }
  end

  # @yieldparam run [#call] runs code in the application, each time in a process of its own
  def in_app(files: {})
    Dir.mktmpdir do |dir|
      write_files(dir, FILES.merge(files))
      Dir.chdir(dir) do
        yield lambda { |code, **environment|
          run_rails(BOOT + code, chdir: dir, env: { "DATABASE_URL" => nil, "RAILS_ENV" => "test", "CASTELLAN" => nil, **environment })
        }
      end
    end
  end
end
