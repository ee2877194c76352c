# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "json"
require "tmpdir"

# The profiler in real Rails applications, each in a process of its own.
class ProfileRailsTest < Minitest::Test
  FILES = {
    "app/models/article.rb" => "class Article < ActiveRecord::Base\n  has_many :comments\nend\n",
    "app/models/comment.rb" => "class Comment < ActiveRecord::Base; end\n",
    "config/database.yml" => %w[development production].map { |name| "#{name}: { adapter: sqlite3, database: library.sqlite3 }\n" }.join,
    "config/routes.rb" => "Rails.application.routes.draw { resources :articles; get '/broken', to: 'articles#broken' }\n",
    "config/initializers/filter.rb" => "Rails.application.config.filter_parameters += [:email]\n",
    "app/controllers/articles_controller.rb" => <<~RUBY
      class ArticlesController < ActionController::API
        def index = render(json: Article.order(:id).map { |article| { title: article.title, again: Article.find(article.id).title } })
        def show = render(json: Rails.cache.fetch("a") { Article.find(params[:id]).title })
        def broken = raise("no \#{params[:email]}")
      end
    RUBY
  }.freeze

  BOOT = <<~RUBY
    require "rails"
    require "active_record/railtie"
    require "action_controller/railtie"
    require "castellan"
    require "rack/mock_request"
    class LibraryApp < Rails::Application
      config.root = Dir.pwd
      config.load_defaults Rails::VERSION::STRING.to_f
      config.active_record.sqlite3_production_warning = false if Rails.version < "7.2"
      config.eager_load = false
      config.secret_key_base = "a" * 64
      config.hosts.clear
      config.cache_store = :memory_store
      config.logger = Logger.new("rails.log")
    end
    HERE = { "REMOTE_ADDR" => "127.0.0.1", "HTTP_HOST" => "localhost:3000" }
    def get(path, headers = HERE) = Rack::MockRequest.new(Rails.application).get(path, headers)
    def boot
      require "sqlite3"
      database = SQLite3::Database.new("library.sqlite3")
      database.execute("CREATE TABLE IF NOT EXISTS articles (id integer PRIMARY KEY, title text)")
      database.execute("CREATE TABLE IF NOT EXISTS comments (id integer PRIMARY KEY, article_id integer)")
      3.times { |number| database.execute("INSERT INTO articles (title) VALUES (?)", ["title \#{number}"]) }
      database.close
      Rails.application.initialize!
    end
    def results = Castellan::Profile::Results.new(Castellan::Store::DirectoryStore.new("tmp/castellan"))
    def last = results.find((results.latest.first || abort(File.read("rails.log"))).id)
  RUBY

  def test_development_profiles_requests_from_localhost
    output = run_app(<<~RUBY)
      boot
      get("/articles") # what is loaded is loaded
      response = get("/articles?email=a@b.c&page=1")
      one = last
      puts JSON.generate(status: response.status, timing: response["server-timing"], endpoint: one.endpoint, query: one.query,
                         queries: one.queries.size, finding: one.findings.first, frames: one.queries.last[:frames], parts: one.parts,
                         bytes: one.response_bytes == response.body.bytesize, page: get("/castellan").status)
    RUBY
    assert_equal [200, "GET articles#index", "email=[FILTERED]&page=1", 4, 200, true],
                 output.values_at("status", "endpoint", "query", "queries", "page", "bytes")
    assert_match(/desc="4 queries, 1 statement repeated", render;dur=/, output["timing"])
    assert_equal "app/controllers/articles_controller.rb:2", output["finding"]["location"]
    assert_equal "app/controllers/articles_controller.rb:2:in `index'", output["frames"].first
    assert_operator output["parts"]["render_ns"], :>, 0
  end

  def test_rails_own_cache_and_exceptions_that_rails_answers
    output = run_app(<<~RUBY)
      boot
      get("/articles/1")
      get("/articles/1")
      show = last
      status = get("/broken?email=a@b.c").status
      puts JSON.generate(cache: show.cache.map { |look| look.values_at(:layer, :outcome) }, endpoint: show.endpoint, status: status,
                         exception: last.exception, secret: last.to_json.include?("a@b.c"))
    RUBY
    assert_equal [[%w[rails hit]], "GET articles#show", 500, false], output.values_at("cache", "endpoint", "status", "secret")
    assert_equal "RuntimeError at app/controllers/articles_controller.rb:4", output["exception"]
  end

  STREAMED = {
    "config/routes.rb" => "Rails.application.routes.draw { get '/lines', to: 'articles#lines'; get '/live', to: 'live#index' }\n",
    "app/controllers/articles_controller.rb" => <<~RUBY,
      class ArticlesController < ActionController::API
        def lines
          response.last_modified = Time.now # Rack::ETag reads bodies without it
          left = Article.order(:id).to_a
          self.response_body = Enumerator.new { |body| body << Article.find(left.shift.id).title while left.any? }
        end
      end
    RUBY
    "app/controllers/live_controller.rb" => <<~RUBY
      class LiveController < ActionController::API
        include ActionController::Live
        def index
          Article.order(:id).each { |article| response.stream.write(article.title) }
        ensure
          response.stream.close
        end
      end
    RUBY
  }.freeze

  def test_a_lazy_body_is_made_once_while_it_is_sent_with_its_queries_and_findings
    output = run_app(<<~RUBY, files: STREAMED)
      boot
      sent = %w[/lines /live].map do |path|
        _, _, body = Rails.application.call(Rack::MockRequest.env_for(path, HERE))
        chunks = body.respond_to?(:to_ary) ? body.to_ary : body
        [chunks.enum_for(:each).to_a.join, body.close].first
      end
      lines = results.latest.map { |one| results.find(one.id) }.find { |one| one.path == "/lines" }
      log = File.read("rails.log")[%r{n_plus_one: 3 queries at [^,]+}]
      puts JSON.generate(sent: sent, queries: lines.queries.size, bytes: lines.response_bytes, log: log)
    RUBY
    titles = "title 0title 1title 2"
    assert_equal [[titles, titles], 4, titles.bytesize, "n_plus_one: 3 queries at app/controllers/articles_controller.rb:5"],
                 output.values_at("sent", "queries", "bytes", "log")
  end

  def test_only_development_has_it_by_default
    code = "boot; puts JSON.generate(there: Rails.application.middleware.first.name == 'Castellan::Profile::Middleware', " \
           "timing: get('/articles')['server-timing'].to_s.include?('db;dur'), page: get('/castellan').status, " \
           "file: File.exist?('tmp/castellan'))"
    absent = { "there" => false, "timing" => false, "page" => 404, "file" => false }
    assert_equal absent, run_app(code, RAILS_ENV: "production")
    assert_equal absent, run_app(code, CASTELLAN: "off")
    assert_equal absent, run_app("Rails.application.config.castellan.profile = false; #{code}")
    assert_equal({ "there" => true, "timing" => true, "page" => 200, "file" => true }, run_app(code))
  end

  def test_it_boots_without_a_writable_directory
    ["FileUtils.touch('tmp/castellan')", "Dir.mkdir('tmp/castellan') && File.chmod(0o777, 'tmp/castellan')"].each do |obstacle|
      output = run_app("require 'fileutils'; Dir.mkdir('tmp'); #{obstacle}; boot; get('/articles'); " \
                       "puts JSON.generate(page: get('/castellan').body.include?('articles#index'), log: File.read('rails.log'))")
      assert output["page"]
      assert_match(%r{each process stores its own profiles.*tmp/castellan}, output["log"])
    end
  end

  def test_production_requires_a_signed_link
    output = run_app(<<~RUBY, RAILS_ENV: "production")
      Rails.application.config.castellan.profile = { secret: "s" * 32 }
      boot
      token = { "HTTP_CASTELLAN_TOKEN" => Castellan::Profile::Token.new("s" * 32).sign(60) }
      puts JSON.generate(here: [get("/articles")["server-timing"], get("/castellan").status], token: get("/castellan", token).status,
                         timing: get("/articles", token)["server-timing"].to_s)
    RUBY
    assert_equal [[nil, 404], 200], output.values_at("here", "token")
    assert_match(/4 queries, 1 statement repeated/, output["timing"])
  end

  def test_an_unused_eager_load_is_on_the_page
    output = run_app(<<~RUBY)
      Rails.application.config.castellan.detection = { evidence: 1 }
      boot
      ArticlesController.define_method(:index) { render(json: Article.preload(:comments).map(&:title)) }
      20.times { get("/articles") }
      puts JSON.generate(page: get("/castellan").body)
    RUBY
    assert_match(/Article#comments.*loaded eagerly and never read/, output["page"])
    assert_includes output["page"], "<b>20 requests</b> were looked at"
  end

  def test_the_signed_link_works_below_a_mount_path
    output = run_app("Rails.application.config.relative_url_root = '/api/'; boot; puts JSON.generate(log: File.read('rails.log'))")
    assert_match(%r{profiles are at /api/castellan; from elsewhere at /api/castellan\?castellan_token=\d}, output["log"])
  end

  def test_boot_leaves_a_signed_link_that_every_process_accepts
    Dir.mktmpdir do |directory|
      program = "boot; puts JSON.generate(log: File.read('rails.log'))"
      link = run_app(program, directory: directory)["log"][%r{(?<=from elsewhere at )/castellan\?\S+}]
      assert_match(/castellan_token=\d+\./, link)
      program = "boot; puts JSON.generate(status: get(#{link.inspect}, { 'REMOTE_ADDR' => '172.17.0.1' }).status)"
      status = run_app(program, directory: directory)
      assert_equal({ "status" => 303 }, status)
    end
  end

  private

  def run_app(code, directory: nil, files: {}, **environment)
    return Dir.mktmpdir { |made| run_app(code, directory: made, files: files, **environment) } unless directory

    write_files(directory, FILES.merge(files))
    environment = { "DATABASE_URL" => nil, "RAILS_ENV" => "development", "CASTELLAN" => nil, **environment.transform_keys(&:to_s) }
    JSON.parse(run_rails(BOOT + code, chdir: directory, env: environment).lines.last)
  end
end
