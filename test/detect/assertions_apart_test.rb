# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"

# The assertions in a plain minitest file and in a Rails application, each in its own process.
class DetectAssertionsApartTest < Minitest::Test
  SEQUEL = <<~RUBY
    require "minitest/autorun"
    require "sequel"
    require "castellan"

    DB = Sequel.sqlite
    DB.create_table(:authors) { primary_key :id; String :name }
    DB.create_table(:books) { primary_key :id; Integer :author_id }
    class Author < Sequel::Model; one_to_many :books; end
    class Book < Sequel::Model; many_to_one :author; end
    DB.freeze

    class BooksTest < Minitest::Test
      include Castellan::Detect::Assertions

      def setup = Book.dataset.delete && write_books(3)

      def test_eager = assert_no_repeated_queries { Book.eager(:author).all.map { |book| book.author.name } }

      def test_lazy
        assert_no_repeated_queries { Book.all.map { |book| book.author.name } }
      end

      def test_constant = assert_queries_constant(method(:write_books)) { Book.eager(:author).all.map { |book| book.author.name } }

      def test_growing
        assert_queries_constant(method(:write_books)) { Book.all.map { |book| book.author.name } }
      end

      def write_books(count) = count.times { Book.create(author: Author.create(name: "one")) }
    end
  RUBY

  RAILS = {
    "config/environment.rb" => <<~RUBY,
      ENV["RAILS_ENV"] = "test"
      require "rails"
      require "active_record/railtie"
      require "action_controller/railtie"
      require "castellan"
      class BookShop < Rails::Application
        config.root = File.expand_path("..", __dir__)
        config.load_defaults Rails::VERSION::STRING.to_f
        config.eager_load = false
        config.secret_key_base = "a" * 64
        config.hosts.clear
        config.logger = Logger.new(nil)
        config.active_record.maintain_test_schema = false
      end
      Rails.application.initialize!
    RUBY
    "config/database.yml" => "test: { adapter: sqlite3, database: shop.sqlite3 }\n",
    "config/routes.rb" => "Rails.application.routes.draw { get '/books/:way', to: 'books#index' }\n",
    "app/models/author.rb" => "class Author < ActiveRecord::Base; end\n",
    "app/models/book.rb" => "class Book < ActiveRecord::Base\n  belongs_to :author\nend\n",
    "app/controllers/books_controller.rb" => <<~RUBY,
      class BooksController < ActionController::API
        def index
          books = params[:way] == "eager" ? Book.includes(:author) : Book.all
          render json: books.map { |book| book.author.name }
        end
      end
    RUBY
    "known.yml" => "- file: app/controllers/books_controller.rb\n  association: Book#author\n  reason: nobody asks for it\n",
    "test/books_test.rb" => <<~RUBY
      require_relative "../config/environment"
      require "rails/test_help"
      ActiveRecord::Schema.verbose = false
      ActiveRecord::Schema.define do
        create_table(:authors) { |table| table.string :name }
        create_table(:books) { |table| table.integer :author_id }
      end

      class BooksTest < ActionDispatch::IntegrationTest
        include Castellan::Detect::Assertions

        setup { write_books(3) }

        test("eager") { assert_no_repeated_queries { get "/books/eager" } }
        test("lazy") { assert_no_repeated_queries { get "/books/lazy" } }
        test("known") { assert_no_repeated_queries(known: "known.yml") { get "/books/lazy" } }
        test("constant") { assert_queries_constant(method(:write_books)) { get "/books/eager" } }
        test("growing") { assert_queries_constant(method(:write_books)) { get "/books/lazy" } }

        def write_books(count) = count.times { Book.create!(author: Author.create!(name: "one")) }
      end
    RUBY
  }.freeze

  def test_assertions_in_a_minitest_file_with_sequel
    output = minitest("books_test.rb" => SEQUEL)
    assert_match(/4 runs, \d+ assertions, 2 failures, 0 errors/, output)
    assert_match(/Queries repeat: 1 finding\n\s+n_plus_one: 3 queries at books_test.rb:20 through Book#author/, output)
    assert_includes output, "add .eager(:author)"
    assert_includes output, "1.0 more queries per record at books_test.rb:26"
  end

  def test_assertions_in_a_rails_application
    output = minitest(RAILS, "test/books_test.rb")
    assert_match(/5 runs, \d+ assertions, 2 failures, 0 errors/, output)
    assert_match(%r{n_plus_one: 3 queries at app/controllers/books_controller.rb:4 through Book#author for 3 records}, output)
    assert_includes output, "1.0 more queries per record at app/controllers/books_controller.rb:4"
  end

  private

  # @return [String] the output of minitest
  def minitest(files, run = files.keys.first)
    Dir.mktmpdir do |dir|
      files.each do |name, text|
        FileUtils.mkdir_p(File.join(dir, File.dirname(name)))
        File.write(File.join(dir, name), text)
      end
      env = { "DATABASE_URL" => nil, "RAILS_ENV" => nil, "CASTELLAN" => nil, "MT_NO_PLUGINS" => nil }
      Open3.capture2e(env, RbConfig.ruby, "-I#{ROOT}/lib", run, chdir: dir).first
    end
  end
end
