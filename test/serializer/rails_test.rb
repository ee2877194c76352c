# frozen_string_literal: true

require "test_helper"
require "tmpdir"

# Serializers in a Rails application, which runs in its own process.
class SerializerInRailsTest < Minitest::Test
  FILES = {
    "config/database.yml" => "test: { adapter: sqlite3, database: library.sqlite3 }\n",
    "app/models/article.rb" => "class Article < ActiveRecord::Base\n  has_many :notes\nend\n",
    "app/models/note.rb" => "class Note < ActiveRecord::Base\nend\n",
    "app/serializers/note_serializer.rb" => "class NoteSerializer\n  include Castellan::Serializer\n  attributes :text\nend\n",
    "app/serializers/article_serializer.rb" =>
      "class ArticleSerializer\n  include Castellan::Serializer\n  attributes :title\n  has_many :notes\nend\n",
    "config/routes.rb" =>
      "Rails.application.routes.draw { get '/articles', to: 'articles#index'\n get '/articles/:id', to: 'articles#show' }\n",
    "app/controllers/articles_controller.rb" => <<~RUBY
      class ArticlesController < ActionController::API
        rescue_from(Castellan::BadRequest) { |error| render json: { errors: [error.to_h] }, status: error.status }

        def index
          render json: ArticleSerializer.new(Article.order(:id), include: params[:include], params: { reader: "Ada" })
        end

        def show
          render json: { wrapped: ArticleSerializer.new(Article.find(params[:id])) }
        end
      end
    RUBY
  }.freeze

  BOOT = <<~'RUBY'
    require "rails"
    require "active_record/railtie"
    require "action_controller/railtie"
    require "castellan"
    require "rack/mock_request"
    class LibraryApp < Rails::Application
      config.root = Dir.pwd
      config.load_defaults Rails::VERSION::STRING.to_f
      config.eager_load = false
      config.enable_reloading = true
      config.secret_key_base = "a" * 64
      config.hosts.clear
      config.logger = Logger.new($stdout)
      config.log_level = :warn
    end
    Rails.application.initialize!
    ActiveRecord::Base.connection.instance_exec do
      create_table(:articles) { |t| t.string :title }
      create_table(:notes) { |t| t.string :text; t.integer :article_id }
      execute "INSERT INTO articles VALUES (1, 'First'), (2, 'Second <b>')"
      execute "INSERT INTO notes VALUES (1, 'Well', 1)"
    end
    def get(path) = Rack::MockRequest.new(Rails.application).get(path)
    def serializer(body) = File.write("app/serializers/article_serializer.rb", "class ArticleSerializer\n  include Castellan::Serializer\n  #{body}\nend\n")
  RUBY

  def test_a_controller_renders_a_serializer_of_a_relation
    output = run_app(<<~RUBY)
      made = 0
      ActiveSupport::Notifications.subscribe("instantiation.active_record") { |event| made += event.payload[:record_count] }
      puts get("/articles?include=notes").body, made, get("/articles/1").body
      bad = get("/articles?include=nope")
      p bad.status, JSON.parse(bad.body)["errors"][0]["source"].to_a
    RUBY
    all, made, one, *rest = output.lines.map(&:chomp)
    assert_equal "0", made
    assert_equal({ "data" => [{ "type" => "note", "id" => "1" }] }, JSON.parse(all)["data"][0]["relationships"]["notes"])
    assert_equal [{ "type" => "note", "id" => "1", "attributes" => { "text" => "Well" } }], JSON.parse(all)["included"]
    assert_includes all, 'Second \u003cb\u003e'
    assert_equal "First", JSON.parse(one)["wrapped"]["data"]["attributes"]["title"]
    assert_equal ["400", '[["parameter", "include"]]'], rest
  end

  # Requires the documented line of the Gemfile only, without `require "castellan"`.
  def test_a_bad_include_is_a_400_where_compat_alone_is_required
    boot = BOOT.sub('require "castellan"', 'require "castellan/compat/jsonapi_serializer"')
    rescues = FILES["app/controllers/articles_controller.rb"].lines.grep_v(/rescue_from/).join
    output = run_app(<<~RUBY, boot: boot, files: { "app/controllers/articles_controller.rb" => rescues })
      Rails.application.config.action_dispatch.show_exceptions = :all
      p get("/articles?include=nope").status, get("/articles?include=notes").status
    RUBY
    assert_equal %w[400 200], output.lines.map(&:chomp).last(2)
  end

  def test_a_reloaded_serializer_replaces_the_old_one_without_a_leak
    output = run_app(<<~RUBY)
      keys = ["attribute(:one) { |article| article.title }", "attributes :title", "attribute :two, from: 'title'"].map do |body|
        serializer(body)
        Rails.application.reloader.reload!
        JSON.parse(get("/articles").body)["data"][0]["attributes"].keys
      end
      p keys
      30.times { Rails.application.reloader.reload!; get("/articles") }
      GC.start
      p ObjectSpace.each_object(Class).count { |known| known < Castellan::Resource } < 15
    RUBY
    assert_equal "[[\"one\"], [\"title\"], [\"two\"]]\ntrue\n", output
  end

  private

  def run_app(code, boot: BOOT, files: {})
    Dir.mktmpdir do |dir|
      write_files(dir, FILES.merge(files))
      output = run_rails(boot + code, chdir: dir, env: { "DATABASE_URL" => nil, "RAILS_ENV" => "test", "CASTELLAN" => nil })
      output.lines.reject { |line| line.start_with?("--", "   ->") }.join
    end
  end
end
