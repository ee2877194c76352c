# frozen_string_literal: true

require "test_helper"
require "json"
require_relative "active_record_world"
require_relative "sequel_world"

# Links of many parents through a join table, with duplicates, dangling rows and parents without any, come in
# the same order whether the related records are included or not.
module ManyLinksContract
  SIZES = [3, 120].freeze # PostgreSQL returns 3 as rows, 120 as two lists

  def test_links_equal_those_of_the_records
    SIZES.each do |size|
      filled(size) do
        [nil, "songs"].each { |include| assert_equal expected, linked(include: include), [size, include].inspect }
        assert_equal expected.values.flatten.uniq.sort, included.map { |one| one["id"] }.sort
        assert_equal expected, linked(include: "songs", encoder: "ruby")
        assert_equal expected, linked(include: "songs", rows: scope.limit(size)), "with ids"
      end
    end
  end

  def test_rows_of_the_join_table_without_a_parent_are_left_out
    SIZES.each do |size|
      filled(size) do
        scope.all.to_a[1].delete
        [nil, "songs"].each { |include| assert_equal expected, linked(include: include), [size, include].inspect }
        assert_equal expected.values.flatten.uniq.sort, included.map { |one| one["id"] }.sort
        assert_equal expected, linked(include: "songs", encoder: "ruby")
      end
    end
  end

  def test_dangling_rows_of_the_join_table_are_left_out
    SIZES.each do |size|
      filled(size) do
        everything = expected
        dangle
        refute_equal everything, expected
        [nil, "songs"].each { |include| assert_equal expected, linked(include: include), [size, include].inspect }
        assert_equal expected.values.flatten.uniq.sort, included.map { |one| one["id"] }.sort
        nested = JSON.parse(resource.render(scope, include: "songs", format: :nested))
        assert_equal(expected, nested.to_h { |one| [one["id"].to_s, one["songs"].map { |song| song["id"].to_s }] })
      end
    end
  end

  def test_links_of_one_record
    filled(4) do
      expected.each do |id, songs|
        document = JSON.parse(resource.render(scope, id: id, include: "songs"))
        assert_equal songs, document.dig("data", "relationships", "songs", "data").map { |song| song["id"] }
        assert_equal songs.uniq.sort, document["included"].map { |song| song["id"] }.sort
      end
    end
  end

  def test_no_record_has_links
    filled(60) do
      unlink
      assert_equal [[]], linked(include: "songs").values.uniq
      assert_equal [[]], linked.values.uniq
      assert_empty included
    end
  end

  private

  # One singer in four has no song; some have one twice.
  def links(singers, songs)
    pairs = singers.each_with_index.flat_map do |singer, index|
      chosen = songs.rotate(index).first(index % 4)
      [*chosen, *(songs[0] if chosen.size == 3)].map { |song| [singer, song] }
    end
    pairs.each_slice(3).flat_map(&:reverse)
  end

  def linked(encoder: nil, rows: scope, **options)
    ENV["CASTELLAN_ENCODER"] = encoder
    JSON.parse(resource.render(rows, **options))["data"].to_h do |singer|
      [singer["id"], singer["relationships"]["songs"]["data"].map { |song| song["id"] }]
    end
  ensure
    ENV.delete("CASTELLAN_ENCODER")
  end

  def included = JSON.parse(resource.render(scope, include: "songs"))["included"]

  def resource_of(singer, song)
    songs = Class.new(Castellan::Resource) { type("songs") && attribute(:title) }
    songs.model(song)
    Class.new(Castellan::Resource) { type "singers" }.tap do |resource|
      resource.model(singer)
      resource.has_many(:songs, resource: songs)
    end
  end
end

module ActiveRecordManyLinks
  include ManyLinksContract

  MODELS = <<~RUBY
    class Singer < Base
      has_many :performances
      has_many :songs, through: :performances
    end
    class Song < Base; end
    class Performance < Base
      belongs_to :singer
      belongs_to :song
    end
  RUBY

  def test_only_the_join_table_is_queried_if_the_related_rows_are_read
    filled(3) do
      sent = []
      seen = ->(*, payload) { sent << payload[:sql] unless payload[:name] == "SCHEMA" }
      ActiveSupport::Notifications.subscribed(seen, "sql.active_record") do
        resource.render(scope, include: "songs")
      end
      assert_equal 1, sent.grep(/performances/).size
      assert_empty sent.grep(/JOIN/)
    end
  end

  private

  def filled(size)
    world::Base.connection.begin_transaction(joinable: false)
    songs = Array.new(5) { |index| world::Song.create!(title: "Song #{index}").id }
    singers = Array.new(size) { |index| world::Singer.create!(name: "Singer #{index}").id }
    world::Performance.insert_all(links(singers, songs).map { |singer, song| { singer_id: singer, song_id: song } })
    yield
  ensure
    world::Base.connection.rollback_transaction
  end

  def dangle
    world::Song.order(:id).first.delete
    world::Performance.last.update_columns(song_id: nil)
  end

  def unlink = world::Performance.delete_all
  def scope = world::Singer.order(:id)
  def resource = resource_of(world::Singer, world::Song)

  def expected
    scope.to_h { |singer| [singer.id.to_s, singer.songs.order("performances.id").map { |song| song.id.to_s }] }
  end

  def world
    return base::ManyLinks if base.const_defined?(:ManyLinks)

    base::Base.connection.create_table(:singers) { |table| table.string :name }
    base::Base.connection.create_table(:songs) { |table| table.string :title }
    base::Base.connection.create_table(:performances) { |table| table.bigint :singer_id, :song_id }
    base.const_set(:ManyLinks, Module.new).tap do |made|
      made.const_set(:Base, base::Base)
      made.module_eval(MODELS, __FILE__)
    end
  end
end

class ManyLinksOnSqliteTest < Minitest::Test
  include ActiveRecordManyLinks

  def test_text_in_an_integer_column_is_not_a_link
    filled(3) do
      world::Base.connection.execute("UPDATE performances SET song_id = '#{world::Song.ids.first(2).join(",")}' WHERE id = " \
                                     "(SELECT MAX(id) FROM performances)")
      assert_equal expected, linked(include: "songs")
    end
  end

  private

  def base = ActiveRecordWorld.sqlite
end

class ManyLinksOnPostgresTest < Minitest::Test
  include ActiveRecordManyLinks

  def setup
    needs :postgres
  end

  def test_many_links_come_in_one_row
    filled(120) do
      assert_equal({ "songs" => 1 }, link_rows)
      assert_equal({}, link_rows(scope.limit(3)))
    end
  end

  def test_ids_above_the_integer_range_of_the_encoder_are_links
    filled(60) do
      world::Song.insert_all([{ id: 2**62, title: "Late" }])
      world::Performance.insert_all(scope.ids.map { |id| { singer_id: id, song_id: 2**62 } })
      [nil, "songs"].each { |include| assert_equal expected, linked(include: include) }
    end
  end

  private

  def base = ActiveRecordWorld.postgres

  # @return [Hash{String => Integer}] the number of rows that hold the links, if they are lists
  def link_rows(relation = scope)
    document = resource.document(relation)
    row_set = Castellan::Rows.for(world::Singer).fetch(document.rendering.plan, relation)
    table = row_set.tables.first
    table.node.edges.zip(table.links).select { |_, link| link.is_a?(Castellan::Plan::RowSet::Lists) }
         .to_h { |edge, link| [edge.relationship.name.to_s, link.rows.ntuples] }
  end
end

module SequelManyLinks
  include ManyLinksContract

  def self.worlds = @worlds ||= {}

  private

  def filled(size)
    world::DB.transaction(rollback: :always) do
      songs = Array.new(5) { |index| world::DB[:songs].insert(title: "Song #{index}") }
      singers = Array.new(size) { |index| world::DB[:singers].insert(name: "Singer #{index}") }
      world::DB[:performances].import(%i[singer_id song_id], links(singers, songs))
      yield
    end
  end

  def dangle
    world::DB[:songs].where(id: world::DB[:songs].min(:id)).delete
    world::DB[:performances].where(id: world::DB[:performances].max(:id)).update(song_id: nil)
  end

  def unlink = world::DB[:performances].delete
  def scope = world::Singer.order(:id)
  def resource = resource_of(world::Singer, world::Song)

  def expected
    scope.to_h { |singer| [singer.id.to_s, singer.songs_dataset.order(Sequel[:performances][:id]).map { |song| song.id.to_s }] }
  end

  def build(name, database)
    { singers: { name: String }, songs: { title: String }, performances: { singer_id: Integer, song_id: Integer } }.each do |table, columns|
      database.create_table(table) do
        primary_key :id
        columns.each { |column, type| column(column, type) }
      end
    end
    world = Object.const_set(name, Module.new)
    world.const_set(:DB, database)
    song = world.const_set(:Song, Class.new(Sequel::Model(database[:songs])))
    world.const_set(:Singer, Class.new(Sequel::Model(database[:singers])))
         .many_to_many(:songs, class: song, left_key: :singer_id, right_key: :song_id, join_table: :performances)
    world
  end
end

class SequelManyLinksOnSqliteTest < Minitest::Test
  include SequelManyLinks

  private

  def world = SequelManyLinks.worlds[:sqlite] ||= build(:SequelSingersOnSqlite, Sequel.sqlite)
end

class SequelManyLinksOnPostgresTest < Minitest::Test
  include SequelManyLinks

  def setup
    needs :postgres
  end

  private

  def world
    SequelManyLinks.worlds[:postgres] ||= build(:SequelSingersOnPostgres, Sequel.connect(Castellan::TestServers.postgres_url))
  end
end

# UUIDs have no commas, so each parent's links may be one text in its row.
class UuidLinksTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Wall < Base
    has_many :latest_notes, -> { order(written: :desc).limit(2) }, class_name: "UuidLinksTest::Note"
  end

  class Note < Base
  end

  class NoteResource < Castellan::Resource
    model Note
    scope { |notes, viewer| viewer ? notes.where.not(written: viewer) : notes }
  end

  class WallResource < Castellan::Resource
    model Wall
    has_many :latest_notes, resource: NoteResource
  end

  def test_a_limit_is_for_each_parent
    Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    Base.connection.create_table(:walls)
    Base.connection.create_table(:notes, id: false) do |table|
      table.column :id, :uuid, primary_key: true
      table.bigint :wall_id
      table.integer :written
    end
    Wall.insert_all!([{ id: 1 }, { id: 2 }, { id: 3 }])
    Note.insert_all!((1..6).map { |n| { id: "0000000#{n}-0000-4000-8000-000000000000", wall_id: (n % 2) + 1, written: n } })
    { nil => [[6, 4], [5, 3], []], 4 => [[6], [5, 3], []] }.each do |viewer, expected|
      document = JSON.parse(WallResource.render(Wall.order(:id), viewer: viewer, include: "latest_notes"))
      linked = [document, JSON.parse(WallResource.render(Wall.order(:id), viewer: viewer))].map { |one| links(one) }
      assert_equal [expected, expected], linked
      assert_equal expected.flatten.sort, document["included"].map { |one| one["id"].to_i }.sort
    end
  ensure
    Base.remove_connection
  end

  private

  def links(document)
    document["data"].map { |one| one["relationships"]["latest_notes"]["data"].map { |link| link["id"].to_i } }
  end
end
