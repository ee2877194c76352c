# frozen_string_literal: true

require "test_helper"
require "set"
require "tmpdir"
require "active_record"

# Relations with one identity have one SQL; a relation whose identity is not certain has none.
class ScopeIdentityTest < Minitest::Test
  Identity = Castellan::Rows::ActiveRecordRows::Scopes::ScopeIdentity

  # A file, because other tests close all connections.
  DIRECTORY = Dir.mktmpdir
  Minitest.after_run { FileUtils.rm_rf(DIRECTORY) }

  class Base < ActiveRecord::Base
    self.abstract_class = true
    establish_connection(adapter: "sqlite3", database: File.join(DIRECTORY, "books.sqlite3"))
    connection.create_table(:readers) { |table| table.string :name }
    connection.create_table(:books) do |table|
      table.integer :reader_id
      table.string :title, :type
      table.date :bought_on
    end
  end

  class Reader < Base
    has_many :books, class_name: "ScopeIdentityTest::Book"
    has_many :novels, class_name: "ScopeIdentityTest::Novel", foreign_key: :reader_id
    has_many :recent, -> { where("bought_on > ?", 1.day.ago) }, class_name: "ScopeIdentityTest::Book"
    has_many :by_method, class_name: "ScopeIdentityTest::MethodBook", foreign_key: :reader_id
    has_many :hidden, class_name: "ScopeIdentityTest::HiddenBook", foreign_key: :reader_id
  end

  class Book < Base
    belongs_to :reader
  end

  class Novel < Book
  end

  class MethodBook < Base
    self.table_name = "books"

    def self.default_scope = where(title: Thread.current[:scope_identity_title])
  end

  class HiddenBook < Base
    self.table_name = "books"
    default_scope { where(title: Thread.current[:scope_identity_title]) }
  end

  def teardown
    Thread.current[:scope_identity_title] = nil
  end

  def relations
    text = "title = 'a'"
    all = Book.all
    [all, Novel.all, Book.unscoped, all.where(reader_id: 1), all.where(reader_id: 2), all.where(reader_id: "1"), all.where(reader_id: nil),
     all.where(reader_id: [1, 2]), all.where(reader_id: [1]), all.where(reader_id: [12]), all.where.not(reader_id: [1, 2]),
     all.where.not(reader_id: 1), all.where(title: "1"), all.where(title: 1), all.where(title: "a", reader_id: 1),
     all.where(reader_id: 1).where(title: "a"), all.where(text), all.where("title = ?", "a"), all.where("title = :title", title: "a"),
     all.where("title = :other", other: "a"), all.where("title IN (?)", %w[a b]), all.where("title IN (?)", ["a"]), all.where("(#{text})"),
     all.where("1=1").where("2=2"), all.where("1=1) AND (2=2"), all.where(Book.arel_table[:title].eq("a")),
     all.where(Book.arel_table[:reader_id].gt(1)), all.where(Book.arel_table[:reader_id].gteq(1)), all.where(reader_id: 1..3),
     all.where(title: "a").or(all.where(title: "b")), all.where(bought_on: Date.new(2026, 1, 2)), all.where(reader_id: 2**80),
     all.order(:title), all.order(title: :desc), all.order("title"), all.order(:title, :id), all.reorder(nil), all.limit(3), all.limit(4),
     all.offset(3), all.limit(3).offset(4), all.limit(4).offset(3), all.none, all.joins(:reader), all.includes(:reader),
     all.references(:readers), all.includes(:reader).references(:readers), all.includes(:reader).where(readers: { name: "a" }),
     all.preload(:reader), all.where(readers: { name: "a" }), all.lock, all.distinct, all.select(:id), all.from("books AS books"),
     Reader.new(id: 1).books, Reader.all, HiddenBook.all, Book.where(id: Reader.select(:id)), Book.where(title: Arel.sql("reader_id"))]
  end

  def test_records_that_are_loaded_apart_change_no_identity
    plain = Book.where(reader_id: 1)
    same = [plain.includes(:reader), plain.references(:readers), plain.preload(:reader)]
    assert_equal [Identity.of(plain)], same.map { |relation| Identity.of(relation) }.uniq
    assert_nil Identity.of(plain.includes(:reader).references(:readers))
  end

  def test_relations_with_one_identity_have_one_sql
    known = relations.map { |relation| [Identity.of(relation), relation.to_sql] }.reject { |identity, _| identity.nil? }
    assert_operator known.size, :>, 35
    known.group_by(&:first).each { |identity, found| assert_equal 1, found.map(&:last).uniq.size, identity.inspect }
  end

  # Texts and values that could stand in a condition, in the order or in a limit.
  CLAUSES = [
    ->(all) { all.where("title") }, ->(all) { all.order("title") }, ->(all) { all.where("id") }, ->(all) { all.order(:id) },
    ->(all) { all.where(title: "id") }, ->(all) { all.order(title: :desc) }, ->(all) { all.limit(1) }, ->(all) { all.limit(2) },
    ->(all) { all.offset(1) }, ->(all) { all.offset(2) }, ->(all) { all.where(reader_id: 1) }, ->(all) { all.where(reader_id: [1, 2]) },
    ->(all) { all.where("id IN (?) OR reader_id IN (?)", [1, 2], 2) }, ->(all) { all.where("id IN (?) OR reader_id IN (?)", 1, [2, 2]) },
    ->(all) { all.where("id IN (?) OR reader_id IN (?)", [1], [2, 2]) }, ->(all) { all.where("id IN (:a) OR id IN (:b)", a: [1, 2], b: 2) },
    ->(all) { all.where("id IN (:a) OR id IN (:b)", a: 1, b: [2, 2]) }, ->(all) { all.where("title = ?", "title") },
    ->(all) { all.or(all.unscope(:where).where(reader_id: 1)) }, ->(all) { all.or(all.unscope(:where).where(reader_id: 1, title: "id")) },
    ->(all) { all.or(all.unscope(:where).where(reader_id: [1, nil])) },
    ->(all) { all.and(all.unscope(:where).where(reader_id: 1).or(all.unscope(:where).where(title: "id"))) },
    ->(all) { all.invert_where }, ->(all) { all.where.not(reader_id: 1, title: "id") }, ->(all) { all.where(reader_id: 1..2) },
    ->(all) { all.where(reader_id: 1...2) }, ->(all) { all.where(reader_id: 1..) }, ->(all) { all.where.not(reader_id: 1..2) },
    ->(all) { all.where(reader_id: [1, 3..4]) }
  ].freeze

  def test_clauses_in_any_combination_have_one_identity_only_with_one_sql
    combined = [1, 2, 3].flat_map { |size| CLAUSES.permutation(size).to_a }.sample(3_000, random: Random.new(1))
    found = Hash.new { |all, identity| all[identity] = Set.new }
    combined.each do |clauses|
      relation = clauses.reduce(Book.all) { |all, clause| clause.call(all) }
      found[Identity.of(relation)] << relation.to_sql
    end
    found.delete(nil)
    assert_operator found.size, :>, 1_000
    assert_empty(found.select { |_, sql| sql.size > 1 })
  end

  def test_conditions_of_other_values_have_one_shape
    assert_one_shape([1, 2, 3].map { |id| Book.where(reader_id: id).order(:title) })
    # Rails 7.1 and 8.1 write the values of a text condition into the text.
    assert_one_shape([1, 2].map { |id| Book.where("reader_id = ?", id) }) if ActiveRecord.version.segments.first(2) == [7, 2]
    assert_one_shape([1, 2].map { |id| Reader.create!(id: id).books })
  end

  def test_an_uncertain_scope_has_no_identity
    Reader.create!(id: 7)
    [Book.joins(:reader), Book.where(bought_on: Date.new(2026, 1, 2)), Book.where(bought_on: Date.new(2026, 1, 2)..), Book.lock,
     Book.where(title: "a").or(Book.where(bought_on: Date.new(2026, 1, 2))), Book.where(reader_id: 2**80),
     Book.group(:title).having("COUNT(*) > 1"), Book.where(id: Reader.select(:id))].each do |relation|
      assert_nil Identity.of(relation), relation.to_sql
    end
    times = Array.new(2) { Identity.of(Reader.find(7).recent) } # another time in each request
    assert(times == [nil, nil] || times.uniq.size == 2, times.inspect)
  end

  def test_an_association_is_identified_by_its_owners_key_only_where_nothing_else_takes_part
    reader = Reader.create!(id: 8)
    before, after = %w[a b].map do |title|
      Thread.current[:scope_identity_title] = title
      [Identity.of(reader.hidden), Identity.of(reader.by_method)]
    end
    before.zip(after) { |one, other| refute_equal one, other }
    plain = Identity.of(reader.books)
    Book.where(title: "a").scoping { refute_equal plain, Identity.of(reader.books) }
    refute_equal plain, Identity.of(reader.novels)
    refute_equal plain, Identity.of(Reader.new.books)
    refute_equal plain, Identity.of(reader.books.where(title: "a"))
  end

  private

  def assert_one_shape(relations)
    shapes, values = relations.map { |relation| Identity.of(relation) }.transpose
    assert_equal [1, relations.size], [shapes.uniq.size, values.uniq.size]
  end
end
