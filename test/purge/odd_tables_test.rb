# frozen_string_literal: true

require "test_helper"
require "serve/journal_requests"
require "support/purged_proxy"

# A document whose bytes change is purged, also where the table has types without equality, collations, generated columns and names that
# are no plain words, and where only some of the resources were named at the installation.
module PurgeOddTablesContract
  include JournalRequests

  POSTGRES = ["CREATE EXTENSION IF NOT EXISTS citext", "CREATE SCHEMA IF NOT EXISTS odd",
              "CREATE TABLE TABLE_NAME (id bigserial PRIMARY KEY, name citext, note json, place point, price numeric, \"größe\" integer, " \
              "rank integer, twice integer GENERATED ALWAYS AS (rank * 2) STORED)"].freeze
  SQLITE = ["CREATE TABLE TABLE_NAME (id integer PRIMARY KEY, name text COLLATE NOCASE, note text, place text, price numeric, " \
            "\"größe\" integer, rank integer, twice integer GENERATED ALWAYS AS (rank * 2) VIRTUAL)"].freeze
  FIRST = "INSERT INTO TABLE_NAME (id, name, note, place, price, \"größe\", rank) VALUES " \
          "(1, 'a', '{\"a\":1}', '(1,2)', 1.0, 1, 1), (2, 'b', '{}', '(1,2)', 2, 2, 2), (3, 'c', '{}', '(3,4)', 3, 3, 3)"
  WRITES = ["UPDATE TABLE_NAME SET name = 'A' WHERE id = 1", "UPDATE TABLE_NAME SET note = '{\"a\": 1}' WHERE id = 1",
            "UPDATE TABLE_NAME SET place = '(5,6)' WHERE id = 2", "UPDATE TABLE_NAME SET price = 1.00 WHERE id = 1",
            "UPDATE TABLE_NAME SET \"größe\" = 9 WHERE id = 1", "UPDATE TABLE_NAME SET rank = 9 WHERE id = 1",
            "INSERT INTO TABLE_NAME (id, name, rank, \"größe\") VALUES (4, 'd', 8, 0)",
            "UPDATE TABLE_NAME SET note = '{\"a\":\"\\u0000\"}', \"größe\" = -1 WHERE id = 3",
            "UPDATE TABLE_NAME SET note = '\"\\ud800\"' WHERE id = 3", "UPDATE TABLE_NAME SET note = '1e999999' WHERE id = 3",
            "UPDATE TABLE_NAME SET rank = 11 WHERE id = 3"].freeze
  PATHS = %w[/things/1 /things /things?sort=gr%C3%B6%C3%9Fe&page[size]=1 /things?sort=-twice&page[size]=1 /loud?page[size]=1].freeze

  def setup
    journal.fill
    @proxy = PurgedProxy.new
    @purge = Castellan::Purge.new(journal.source, [@proxy], again_after: nil)
  end

  def teardown
    @purge.uninstall(*@resources)
    @clean&.call
  end

  def test_every_document_whose_bytes_changed_is_purged
    create
    install
    assert_empty(WRITES.flat_map { |sql| missed(sql.gsub("TABLE_NAME", quoted)) })
  end

  # The triggers of SQLite name the columns.
  def test_a_column_that_was_added_after_the_installation
    create
    install
    journal.run("ALTER TABLE #{quoted} ADD COLUMN added text")
    assert_equal !postgres?, request("GET", "/things/1")["cache-control"].include?("no-cache")
    @purge.install(@resources)
    refute_includes request("GET", "/things/1")["cache-control"], "no-cache"
  end

  # In either order, and without the resource of the comments.
  def test_installing_one_resource_after_another
    models = journal.models
    post = Class.new(models::PostResource) { cache_control s_maxage: 600 }
    writer = Class.new(models::WriterResource) { cache_control s_maxage: 600 }
    @resources = [post, writer]
    @resources.each { |resource| @purge.install(resource) }
    serve_public("posts" => post, "writers" => writer)
    @paths = %w[/posts/1?include=comments,writer /posts/1 /writers/1]
    writes = ["UPDATE comments SET body = 'Changed' WHERE id = 1", "UPDATE posts SET title = 'Changed' WHERE id = 1",
              "UPDATE writers SET name = 'Changed' WHERE id = 1"]
    assert_empty(writes.flat_map { |sql| missed(sql) })
  end

  # The document is a record of the join table, and its post links to others.
  def test_a_join_table_with_a_resource
    @clean = -> { journal.run("DROP TABLE labels") }
    journal.run("CREATE TABLE labels (id integer PRIMARY KEY, post_id integer, tag_id integer)")
    journal.run("INSERT INTO labels (id, post_id, tag_id) VALUES (1, 1, 1), (2, 1, 2)")
    declare_labels
    @resources = label_resources
    @purge.install(*@resources)
    serve_public(@resources.to_h { |resource| [resource, resource] })
    @paths = %w[/labels/1?include=post /labels/1]
    writes = ["INSERT INTO labels (id, post_id, tag_id) VALUES (3, 1, 3)", "DELETE FROM labels WHERE id = 2"]
    assert_empty(writes.flat_map { |sql| missed(sql) })
  end

  # Rows of an inheriting table are rows of its parent, and its partitions' are noted.
  def test_a_table_with_an_inheriting_one_is_not_kept
    outbox = Castellan::Purge::Outbox.new(journal.source)
    @resources = []
    journal.run("CREATE TABLE parents (id integer PRIMARY KEY, name text)")
    outbox.install({ "parents" => [["id"]] })
    assert_empty outbox.without_triggers(%w[parents])
    @clean = -> { journal.run("DROP TABLE parents") }
    return unless postgres?

    journal.run("CREATE TABLE children () INHERITS (parents)")
    @clean = -> { journal.run("DROP TABLE children; DROP TABLE parents") }
    assert_equal %w[parents], Castellan::Purge::Outbox.new(journal.source).without_triggers(%w[parents])
  end

  # A role that may change a row need not have rights to the notes.
  def test_another_role_changes_a_row
    @resources = [Class.new(journal.models::TagResource) { cache_control s_maxage: 600 }]
    @purge.install(*@resources)
    if postgres?
      @clean = -> { journal.run("DROP OWNED BY castellan_writer; DROP ROLE castellan_writer") }
      journal.run("CREATE ROLE castellan_writer; GRANT SELECT, UPDATE ON tags TO castellan_writer")
    end
    journal.transaction do
      journal.run("SET LOCAL ROLE castellan_writer") if postgres?
      journal.run("UPDATE tags SET name = 'web' WHERE id = 3")
    end
    assert_equal 1, @purge.call
  end

  private

  def postgres? = self.class.name.include?("Postgres")

  def table = postgres? ? "odd.things" : "odd things"

  def quoted = table.split(".").map { |part| "\"#{part}\"" }.join(".")

  def create
    @clean = -> { journal.run("DROP TABLE #{quoted}") }
    (postgres? ? POSTGRES : SQLITE).each { |sql| journal.run(sql.sub("TABLE_NAME", quoted)) }
    journal.run(FIRST.sub("TABLE_NAME", quoted))
  end

  def install
    model = self.model
    thing = Class.new(Castellan::Resource) do
      model model
      type "things"
      attributes :name, :note, :place, :price, :größe, :rank
      attribute :twice
      sort :größe, :twice
      page size: 50
      cache_control s_maxage: 600
    end
    loud = Class.new(thing)
    @resources = [thing, loud]
    @purge.install(*@resources)
    @paths = PATHS
    purge = @purge
    scope = model.where(Sequel.lit("RANK > 1")) if sequel?
    scope ||= model.where("RANK > 1")
    scope = scope.order(sequel? ? Sequel.lit("RANK DESC") : Arel.sql("RANK DESC"))
    @app = Castellan.app do
      resource thing
      resource loud, at: "/loud", scope: ->(_viewer) { scope }
      purge purge
    end
  end

  def serve_public(resources)
    purge = @purge
    @app = Castellan.app do
      resources.each_value { |one| resource one }
      purge purge
    end
  end

  def sequel? = journal.is_a?(SequelJournal)

  def model
    return Class.new(Sequel::Model(journal.models::DB[postgres? ? Sequel[:odd][:things] : table.to_sym])) if sequel?

    table = self.table
    Class.new(journal.models::Base) do
      self.table_name = table
      def self.name = "OddThing"
    end
  end

  # @return [Array<Class>] resources of the labels, posts and tags
  def label_resources
    models = journal.models
    tag = Class.new(models::TagResource) { cache_control s_maxage: 600 }
    post = Class.new(Castellan::Resource) do
      model models.const_get(:Labelled)
      type "posts"
      has_many :tags, resource: tag
      cache_control s_maxage: 600
    end
    label = Class.new(Castellan::Resource) do
      model models.const_get(:Label)
      type "labels"
      belongs_to :post, resource: post
      cache_control s_maxage: 600
    end
    [label, post, tag]
  end

  def declare_labels
    models = journal.models
    return if models.const_defined?(:Label, false)
    return declare_labels_of_sequel(models) if sequel?

    models.module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
      class Labelled < Base
        self.table_name = "posts"
        has_many :labels, foreign_key: :post_id
        has_many :tags, through: :labels
      end
      class Label < Base
        belongs_to :post, class_name: "Labelled"
        belongs_to :tag
      end
    RUBY
  end

  def declare_labels_of_sequel(models)
    labelled = models.const_set(:Labelled, Class.new(Sequel::Model(models::DB[:posts])))
    labelled.many_to_many :tags, class: models::Tag, join_table: :labels, left_key: :post_id, right_key: :tag_id
    models.const_set(:Label, Class.new(Sequel::Model(models::DB[:labels]))).many_to_one :post, class: labelled
  end

  # @return [Array<String>] what a write changed and did not purge
  def missed(sql)
    before = answers
    journal.run(sql)
    @proxy.purged.clear
    @purge.call
    after = answers
    changed = @paths.reject { |path| after[path].last == before[path].last }
    changed.reject { |path| before[path].first.intersect?(@proxy.purged) }.map { |path| "#{sql} changed #{path}" }
  rescue StandardError => error
    [error.message]
  end

  def answers
    @paths.to_h do |path|
      response = request("GET", path)
      assert_equal 200, response.status, "#{path} #{response.body}"
      [path, [response["surrogate-key"].to_s.split, response.body]]
    end
  end
end

JournalRequests.on_every_database(PurgeOddTablesContract)
