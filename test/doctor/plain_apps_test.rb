# frozen_string_literal: true

require "test_helper"
require_relative "doctor_process"

# The doctor on one-file applications, run from the shell.
class PlainAppsTest < Minitest::Test
  include Castellan::DoctorProcess

  DATA = <<~RUBY
    require "sequel"
    DB = Sequel.connect(ENV.fetch("TEST_DATABASE", "sqlite://books.sqlite3"))
    DB.create_table?(:authors) { primary_key :id; String :name }
    DB.create_table?(:books) { primary_key :id; String :title; foreign_key :author_id, :authors }
    if DB[:authors].empty?
      3.times { |n| DB[:authors].insert(name: "Author \#{n}") }
      12.times { |n| DB[:books].insert(title: "Book \#{n}", author_id: n % 3 + 1) }
    end
    class Author < Sequel::Model; end
    class Book < Sequel::Model; many_to_one :author; end
  RUBY

  BOOKS = <<~RUBY
    get "/books" do
      content_type :json
      books = Book.all
      JSON.generate(books.map { |book| { title: book.title, author: book.author.name } })
    end
    get "/write" do
      DB.transaction { Author.create(name: "Nobody") }
      DB.transaction { Author.create(name: "Nobody else"); raise Sequel::Rollback }
      Author.count.to_s
    end
  RUBY

  CLASSIC = "require 'json'\nrequire 'sinatra'\n#{DATA}\n#{BOOKS}".freeze
  MODULAR = "require 'json'\nrequire 'sinatra/base'\n#{DATA}\nclass Library < Sinatra::Base\n#{BOOKS}end\n".freeze
  ROOT_LAMBDA = %(run ->(env) { [200, { "content-type" => "text/plain" }, [env["PATH_INFO"]]] }\n)

  def test_a_classic_sinatra_app_in_one_file
    with_app({ "app.rb" => CLASSIC }) do |app|
      run = app.doctor("--get", "/books")
      assert_equal 0, run.status, run.err
      assert_match(/\ASinatra 4\.[\d.]+ in production, from app\.rb\ndatabase: sqlite \(books\.sqlite3\), Sequel\n/, run.out)
      assert_includes run.out, "table rows  authors 3, books 12"
      assert_match(/^1\. \d+ queries, [\d.]+ ms: the same query for each record \(N\+1\)$/, run.out)
      assert_match(/^   loaded  12 records at app\.rb:\d+$/, run.out)
      assert_match(/^   fix     add \.eager\(:author\) where the books are loaded: app\.rb:\d+$/, run.out)
      assert_match(/^   tried   13 → 2 queries, [\d.]+ → [\d.]+ ms \(SQL .* ms\), [\d,]+ → [\d,]+ objects; the same bytes$/, run.out)
    end
  end

  def test_a_fix_that_changes_the_response_is_no_next_step
    route = 'get("/counted") { Book.all.map { |book| [book.associations.size, book.author.name] }.to_s }'
    with_app({ "app.rb" => "#{CLASSIC}\n#{route}" }) do |app|
      run = app.doctor("--get", "/counted")
      assert_equal 0, run.status, run.err
      assert_match(/^   tried   does not help: the answer differs at \$\[\*\]\[0\] \(13 → 2 queries/, run.out)
      assert_includes run.out, "\nnext: nothing worth doing: the changes that were tried do not help, or save less time than"
      refute_includes app.doctor("--get", "/counted", "--no-try").out, "tried"
    end
  end

  def test_a_modular_sinatra_app_that_the_arguments_name
    with_app({ "library.rb" => MODULAR }) do |app|
      run = app.doctor("library.rb", "--get", "/books", "--json")
      assert_equal 0, run.status, run.err
      assert_equal ["n_plus_one"], run.rows.first["findings"].map { |finding| finding["kind"] }
      assert_equal [[true, true]], run.rows.first["findings"].map { |finding| finding["trial"].values_at("accepted", "same") }
      assert_equal({ "authors" => 3, "books" => 12 }, run.rows.first["tables"])
    end
  end

  def test_a_roda_app_in_a_rackup_file
    route = "r.get('books') { Book.eager(:author).all.map { |book| book.author.name }.join(',') }"
    source = "class Web < Roda\n  route { |r| #{route} }\nend\nrun Web.freeze.app\n"
    with_app({ "config.ru" => "require 'roda'\n#{DATA}\n#{source}" }) do |app|
      run = app.doctor("--get", "/books")
      assert_equal 0, run.status, run.err
      assert_match(/\ARoda 3\.\d+/, run.out)
      assert_includes run.out, "no query is repeated"
    end
  end

  def test_a_lambda_without_any_framework_or_database
    with_app({ "config.ru" => ROOT_LAMBDA }) do |app|
      run = app.doctor("--get", "/a?b=c", "--get", "/d", "--bodies", "bodies/of/it")
      assert_equal 0, run.status, run.err
      assert_match(/\ARack 3/, run.out)
      refute_includes run.out, "database"
      assert_operator run.out.index("GET /a?b=c → 200"), :<, run.out.index("GET /d → 200")
      assert_equal %w[/a /d], %w[1 2].map { |number| File.read(File.join(app.dir, "bodies/of/it/#{number}.body")) }
    end
  end

  def test_json_has_exactly_the_fields_of_the_ledger
    printing = %(run ->(env) { puts "printed"; $stdout.puts "logged"; [200, {}, ["ok"]] }\n)
    with_app({ "config.ru" => printing }) do |app|
      run = app.doctor("--get", "/", "--json", "--no-memory", "--runs", "2")
      row = run.rows.first
      fields = %w[duration_ms sql_ms queries allocated_objects allocated_bytes retained_objects retained_bytes response_bytes]
      assert_equal 1, run.rows.size
      assert_empty fields - row.keys
      assert_equal [2, 2, nil, 200], row.values_at("runs", "response_bytes", "allocated_bytes", "status")
    end
  end

  def test_writes_of_a_get_are_rolled_back_through_sequel_on_sqlite
    with_app({ "app.rb" => CLASSIC }) { |app| assert_rolled_back(app) }
  end

  def test_writes_of_a_get_are_rolled_back_through_sequel_on_postgres
    needs :postgres
    with_app({ "app.rb" => CLASSIC }, env: { "TEST_DATABASE" => Castellan::TestServers.postgres_url }) { |app| assert_rolled_back(app) }
  end

  def test_head_is_measured_without_a_body
    with_app({ "app.rb" => CLASSIC }) do |app|
      run = app.doctor("--curl", "curl -I 'http://books.example/books'", "--json")
      assert_equal ["HEAD /books", 0], run.rows.first.values_at("request", "response_bytes")
    end
  end

  private

  def assert_rolled_back(app)
    run = app.doctor("--get", "/write", "--get", "/write", "--bodies", ".")
    assert_equal 0, run.status, run.err
    assert_equal %w[4 4], (1..2).map { |number| File.read(File.join(app.dir, "#{number}.body")) }
  end
end
