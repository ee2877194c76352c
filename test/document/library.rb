# frozen_string_literal: true

require "tmpdir"
require "active_record"
require "sequel"

# Sets up articles with authors, comments and tags, as models of ActiveRecord or of Sequel, in a database.
#
#   library = Library.active_record(:sqlite)    # or :postgres, or Library.sequel(…); one of each per process
#   library.models::Article                     # resources are declared in library.models as well
#   library.run("DELETE FROM comments")         # SQL without callbacks
#   library.queries { … }                       # => the statements of the block, except schema queries
class Library
  TABLES = %w[authors articles comments tags taggings].freeze
  DIRECTORY = Dir.mktmpdir
  Minitest.after_run { FileUtils.rm_rf(DIRECTORY) }

  class << self
    def active_record(database)
      (@active_record ||= {})[database] ||= ActiveRecordLibrary.new(database)
    end

    def sequel(database)
      (@sequel ||= {})[database] ||= SequelLibrary.new(database)
    end
  end

  attr_reader :models, :url

  def initialize(database)
    @database = database
    @url = database_url unless sqlite?
    @models = Object.const_set("#{self.class.name[/\w+\z/]}#{database.to_s.capitalize}", Module.new)
    connect
    create
    declare
  end

  # Resets the rows, on PostgreSQL in the same physical order: queries without ORDER BY return that order.
  def fill
    TABLES.each { |table| run("DELETE FROM #{table}") }
    run("VACUUM #{TABLES.join(", ")}") unless sqlite?
    run("INSERT INTO authors (id, name, mentor_id) VALUES (1, 'Ada', NULL), (2, 'Grace', 1), (3, 'Edsger', 1)")
    rows = (1..7).map { |id| "(#{id}, #{(id % 3) + 1}, 'Title #{id}', 'Body #{id}', #{10 - id})" }
    run("INSERT INTO articles (id, author_id, title, body, position) VALUES #{rows.join(", ")}")
    run("INSERT INTO comments (id, article_id, body) VALUES (1, 1, 'Yes'), (2, 1, 'No'), (3, 2, 'Well')")
    run("INSERT INTO tags (id, name) VALUES (1, 'ruby'), (2, 'sql')")
    run("INSERT INTO taggings (id, article_id, tag_id) VALUES (1, 1, 1), (2, 1, 2), (3, 3, 1)")
  end

  private

  def sqlite? = @database == :sqlite

  def database_url = Castellan::TestServers.postgres_url

  def path = File.join(DIRECTORY, "#{self.class}.sqlite3")

  def create
    key = sqlite? ? "integer PRIMARY KEY" : "bigserial PRIMARY KEY"
    run("CREATE TABLE authors (id #{key}, name varchar(80), mentor_id bigint)")
    run("CREATE TABLE articles (id #{key}, author_id bigint, title varchar(80), body text, position integer)")
    run("CREATE TABLE comments (id #{key}, article_id bigint, body text)")
    run("CREATE TABLE tags (id #{key}, name varchar(80))")
    run("CREATE TABLE taggings (id #{key}, article_id bigint, tag_id bigint)")
    run("CREATE TABLE stamps (id #{sqlite? ? "varchar(40)" : "uuid"} PRIMARY KEY, label text)")
  end

  def declare
    source = File.expand_path("library_resources.rb", __dir__)
    @models.module_eval(File.read(source), source, 1)
  end
end

# The library as models of ActiveRecord.
class ActiveRecordLibrary < Library
  def run(sql) = @models::Base.connection.execute(sql)

  def transaction(&) = @models::Base.transaction(&)

  def versions = Castellan::Versions::ExactVersions.new(@models::Base)

  def queries
    found = []
    subscriber = ActiveSupport::Notifications.subscribe("sql.active_record") { |*, event| found << event[:sql] unless event[:name] == "SCHEMA" }
    yield
    found.grep_v(/castellan|sqlite_master|pg_/)
  ensure
    ActiveSupport::Notifications.unsubscribe(subscriber)
  end

  private

  def connect
    base = @models.const_set(:Base, Class.new(ActiveRecord::Base) { self.abstract_class = true })
    base.establish_connection(sqlite? ? { adapter: "sqlite3", database: path, timeout: 5000, pool: 20 } : "#{url}?pool=20")
    @models.module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
      class Author < Base
        belongs_to :mentor, class_name: "Author", optional: true
        has_many :articles
      end
      class Tag < Base; end
      class Tagging < Base; belongs_to :article; belongs_to :tag; end
      class Comment < Base; belongs_to :article; end
      class Stamp < Base; end
      class Article < Base
        belongs_to :author
        has_many :comments
        has_many :taggings
        has_many :tags, through: :taggings
      end
    RUBY
  end
end

# The library as models of Sequel.
class SequelLibrary < Library
  class Log
    attr_reader :lines

    def initialize = @lines = []
    def info(line) = @lines << line
    def error(line) = @lines << line
  end

  def run(sql) = @db.run(sql)

  def transaction(&) = @db.transaction(&)

  def versions = Castellan::Versions::ExactVersions.new(@db)

  def queries
    @db.loggers << (log = Log.new)
    yield
    log.lines.grep_v(/castellan|sqlite_master|pg_|PRAGMA/)
  ensure
    @db.loggers.delete(log)
  end

  private

  def create
    super
    declare_models
  end

  def connect
    room = { max_connections: 20 } # a test has eight threads
    @db = sqlite? ? Sequel.sqlite(path, timeout: 5000, **room) : Sequel.connect(url, **room)
  end

  def declare_models
    @models.const_set(:DB, @db)
    @models.module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
      class Author < Sequel::Model(DB[:authors])
        many_to_one :mentor, class: self
        one_to_many :articles
      end
      class Tag < Sequel::Model(DB[:tags]); end
      class Comment < Sequel::Model(DB[:comments]); end
      class Stamp < Sequel::Model(DB[:stamps]); end
      class Article < Sequel::Model(DB[:articles])
      end
    RUBY
    models = @models
    models::Article.class_eval do
      many_to_one :author, class: models::Author
      one_to_many :comments, class: models::Comment, key: :article_id
      many_to_many :tags, class: models::Tag, join_table: :taggings, left_key: :article_id, right_key: :tag_id
    end
    models::Author.one_to_many :articles, class: models::Article, key: :author_id
  end
end
