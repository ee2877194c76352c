# frozen_string_literal: true

require "tmpdir"
require "active_record"
require "sequel"

# Sets up a journal that clients write to: posts with an author, tags and comments, with constraints, validations and a lock
# column, as models of ActiveRecord or of Sequel.
#
#   journal = Journal.active_record(:sqlite)   # or :postgres, or Journal.sequel(…); one of each per process
#   journal.models::PostResource
#   journal.rows("SELECT title FROM posts")    # => [{ "title" => "First" }]
class Journal
  DIRECTORY = Dir.mktmpdir
  Minitest.after_run { FileUtils.rm_rf(DIRECTORY) }

  class << self
    def active_record(database)
      (@active_record ||= {})[database] ||= ActiveRecordJournal.new(database)
    end

    def sequel(database)
      (@sequel ||= {})[database] ||= SequelJournal.new(database)
    end
  end

  attr_reader :models

  def initialize(database)
    @database = database
    @models = Object.const_set("#{self.class}#{database.to_s.capitalize}", Module.new)
    connect
    create
    declare_models
    source = File.expand_path("journal_resources.rb", __dir__)
    @models.module_eval(File.read(source), source, 1)
  end

  def fill
    %w[taggings comments posts writers tags].each { |table| run("DELETE FROM #{table}") }
    run("INSERT INTO writers (id, name, team) VALUES (1, 'Ada', 1), (2, 'Grace', 1), (3, 'Edsger', 2)")
    run("INSERT INTO posts (id, writer_id, title, slug, rating, lock_version) VALUES (1, 1, 'First', 'first', 5, 0), " \
        "(2, 2, 'Second', 'second', 4, 0), (3, 3, 'Hidden', 'hidden', 3, 0)")
    run("INSERT INTO tags (id, name) VALUES (1, 'ruby'), (2, 'sql'), (3, 'http')")
    run("INSERT INTO taggings (post_id, tag_id) VALUES (1, 1), (1, 2), (3, 3)")
    run("INSERT INTO comments (id, post_id, body) VALUES (1, 1, 'Yes'), (2, 1, 'No'), (3, 3, 'Well')")
    return if sqlite?

    %w[writers posts tags comments].each { |table| run("SELECT setval('#{table}_id_seq', 100)") }
  end

  # @return [String] of its own database of PostgreSQL
  def url = @url ||= Castellan::TestServers.postgres_url

  private

  def sqlite? = @database == :sqlite

  def path = File.join(DIRECTORY, "#{self.class}.sqlite3")

  def create
    key = sqlite? ? "integer PRIMARY KEY" : "bigserial PRIMARY KEY"
    run("PRAGMA foreign_keys = ON") if sqlite?
    run("CREATE TABLE writers (id #{key}, name varchar(80) NOT NULL, team integer)")
    run("CREATE TABLE posts (id #{key}, writer_id bigint REFERENCES writers(id), title varchar(80) NOT NULL, " \
        "slug varchar(80) UNIQUE, body text, rating integer CHECK (rating BETWEEN 0 AND 5), price numeric(8,2), " \
        "pinned boolean DEFAULT false, published_on date, published_at timestamp, lock_version integer NOT NULL DEFAULT 0)")
    run("CREATE TABLE tags (id #{key}, name varchar(80) NOT NULL)")
    run("CREATE TABLE taggings (post_id bigint NOT NULL REFERENCES posts(id), tag_id bigint NOT NULL REFERENCES tags(id))")
    run("CREATE TABLE comments (id #{key}, post_id bigint REFERENCES posts(id), body text)")
  end
end

# The journal as models of ActiveRecord.
class ActiveRecordJournal < Journal
  def run(sql) = @models::Base.connection.execute(sql)

  def rows(sql) = @models::Base.connection.select_all(sql).to_a

  def source = @models::Base

  def transaction(&block) = @models::Base.transaction(&block)

  def versions = Castellan::Versions::ExactVersions.new(source)

  # Of the transaction that is open.
  def after_commit(&block) = @models::Base.connection.current_transaction.after_commit(&block)

  def busy = ActiveRecord::Deadlocked.new("of a callback")

  private

  def connect
    base = @models.const_set(:Base, Class.new(ActiveRecord::Base) { self.abstract_class = true })
    base.establish_connection(sqlite? ? { adapter: "sqlite3", database: path, timeout: 5000, pool: 20 } : "#{url}?pool=20")
  end

  def declare_models
    @models.module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
      class Writer < Base; has_many :posts; end
      class Tag < Base; end
      class Comment < Base; belongs_to :post, optional: true; end
      class Post < Base
        belongs_to :writer, optional: true
        has_many :comments
        has_and_belongs_to_many :tags, join_table: :taggings
        validates :title, length: { minimum: 3 }
        before_destroy { throw :abort if title == "Kept" }
        before_destroy { comments.delete_all && tags.clear }
      end
    RUBY
  end
end

# The journal as models of Sequel.
class SequelJournal < Journal
  def run(sql) = @db.run(sql)

  def rows(sql) = @db.fetch(sql).all.map { |row| row.transform_keys(&:to_s) }

  def source = @db

  def transaction(&block) = @db.transaction(&block)

  def versions = Castellan::Versions::ExactVersions.new(source)

  def after_commit(&block) = @db.after_commit(&block)

  def busy = Sequel::SerializationFailure.new("of a callback")

  private

  def connect
    room = { max_connections: 20 }
    @db = sqlite? ? Sequel.sqlite(path, timeout: 5000, **room) : Sequel.connect(url, **room)
  end

  def declare_models
    @models.const_set(:DB, @db)
    @models.module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
      class Writer < Sequel::Model(DB[:writers]); end
      class Tag < Sequel::Model(DB[:tags]); end
      class Comment < Sequel::Model(DB[:comments]); end
      class Post < Sequel::Model(DB[:posts])
        plugin :optimistic_locking
        def validate
          super
          errors.add(:title, "is too short (minimum is 3 characters)") if title.to_s.size < 3
        end
        def before_destroy
          cancel_action if title == "Kept"
          remove_all_comments
          remove_all_tags
          super
        end
      end
    RUBY
    models = @models
    models::Post.class_eval do
      many_to_one :writer, class: models::Writer
      one_to_many :comments, class: models::Comment, key: :post_id
      many_to_many :tags, class: models::Tag, join_table: :taggings, left_key: :post_id, right_key: :tag_id
    end
    models::Comment.many_to_one :post, class: models::Post
    models::Writer.one_to_many :posts, class: models::Post, key: :writer_id
  end
end
