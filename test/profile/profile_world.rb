# frozen_string_literal: true

require "active_record"
require "castellan/profile"
require "logger"
require "minitest/mock"
require "rack/mock"
require "sequel"
require "tmpdir"

# A library of books and authors in a file of SQLite, for ActiveRecord and Sequel, and requests through the middleware.
module ProfileWorld
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Author < Base
    self.table_name = "authors"
  end

  class Book < Base
    self.table_name = "books"
    belongs_to :author, class_name: "ProfileWorld::Author"
  end

  BOOKS = 12

  def setup
    super
    @directory = Dir.mktmpdir
    @file = File.join(@directory, "library.sqlite3")
    Base.establish_connection(adapter: "sqlite3", database: @file, pool: 20, timeout: 5_000)
    fill
    sequel
    @log = StringIO.new
  end

  def teardown
    forget(@sequel)
    forget(Base)
    FileUtils.rm_rf(@directory)
    super
  end

  def fill
    Base.connection.create_table(:authors) { |table| table.string(:name) }
    Base.connection.create_table(:books) { |table| table.integer(:author_id) && table.string(:title) }
    BOOKS.times { |number| Book.create!(title: "book #{number}", author: Author.create!(name: "author #{number}")) }
  end

  def sequel
    @sequel ||= Sequel.sqlite(@file).tap { |database| database[:books].where(id: 0).limit(1).all } # asks for the version once
  end

  # A careless application: one statement for each book.
  def careless = Book.order(:id).map { |book| [book.title, book.author.name] }

  # @return [Castellan::Profile::Middleware] around an application that does this; everybody is authorised
  def profiled(app = nil, **options, &work)
    app ||= ->(env) { [200, { "content-type" => "application/json" }, [work.call(env).to_s]] }
    options = { authorize: ->(_env) { true }, environment: "test", logger: Logger.new(@log) }.merge(options)
    @middleware = Castellan::Profile::Middleware.new(app, **options)
  end

  def get(path, **env) = Rack::MockRequest.new(@middleware).get(path, env.transform_keys(&:to_s))

  # @return [Castellan::Profile::Result] of the last request
  def result = @middleware.results.find(@middleware.results.latest.first.id)

  def results = @middleware.results.latest.map { |summary| @middleware.results.find(summary.id) }
end
