# frozen_string_literal: true

require "test_helper"
require "sequel"
require "set"
require "castellan/rows"

class SequelScopeIdentityTest < Minitest::Test
  Identity = Castellan::Rows::SequelRows::Scopes::ScopeIdentity

  def setup
    @database = Sequel.sqlite
    @database.create_table(:books) do
      primary_key :id
      Integer :reader_id
      String :title
    end
    @database.create_table(:readers) { primary_key :id }
    @book = Class.new(Sequel::Model(@database[:books]))
    book = @book
    @reader = Class.new(Sequel::Model(@database[:readers])) { one_to_many :books, class: book, key: :reader_id }
  end

  def teardown
    @database.disconnect
    Sequel::DATABASES.delete(@database)
  end

  def datasets
    all = @book.dataset
    [all, *conditions(all), all.order(:title), all.order(Sequel.desc(:title)), all.order(Sequel.desc(:title, nulls: :last)),
     all.order(Sequel.lit("title")), all.order(:title, :id), all.order(Sequel[:books][:title]), all.unordered, all.limit(3), all.limit(4),
     all.limit(3, 4), all.limit(4, 3), all.distinct, all.select(:id), all.join(:readers, id: :reader_id), all.from(:readers), all.from_self,
     all.for_update, all.group(:title), all.union(all), *@reader.load(id: 1).then { |reader| [reader.books_dataset] },
     all.with_extend { define_method(:select_sql) { "SELECT 1" } }]
  end

  def conditions(all)
    text = "title = 'a'"
    [all.where(reader_id: 1), all.where(reader_id: 2), all.where(reader_id: "1"), all.where(reader_id: nil), all.where(reader_id: [1, 2]),
     all.where(reader_id: [1]), all.where(reader_id: [12]), all.exclude(reader_id: [1, 2]), all.exclude(reader_id: 1),
     all.where(title: "1"), all.where(title: "title"), all.where(title: :title), all.where(title: Sequel.lit("title")),
     all.where(title: Sequel.blob("title")),
     all.where(title: "a", reader_id: 1), all.where(reader_id: 1).where(title: "a"), all.where(Sequel.lit(text)),
     all.where(Sequel.lit("(#{text})")), all.where(Sequel.lit("title = ?", "a")), all.where(Sequel.lit("title = ?", "b")),
     all.where(Sequel.lit("title = :t", t: "a")),
     all.where { reader_id > 1 }, all.where { reader_id >= 1 }, all.where { (reader_id > 1) | { title: "a" } }, all.where(reader_id: 1..3),
     all.where(title: "a").or(title: "b"), all.where(title: Date.new(2026, 1, 2)), all.where(id: @reader.select(:id)), all.where(true),
     all.where(Sequel[:books][:title] => "a"), all.where(Sequel["books.title"] => "a"), all.where(Sequel.function(:lower, :title) => "a")]
  end

  def test_datasets_with_one_identity_have_one_sql
    known = datasets.map { |dataset| [Identity.of(dataset, @book.dataset), dataset.sql] }.reject { |identity, _| identity.nil? }
    assert_operator known.size, :>, 35
    known.group_by(&:first).each { |identity, found| assert_equal 1, found.map(&:last).uniq.size, identity.inspect }
  end

  # Names and values that could stand in a condition, in the order or in a limit.
  CLAUSES = [
    ->(all) { all.where(:title) }, ->(all) { all.order_append(:title) }, ->(all) { all.where(:id) }, ->(all) { all.order_append(:id) },
    ->(all) { all.where(Sequel.lit("title")) }, ->(all) { all.order_append(Sequel.lit("title")) }, ->(all) { all.limit(1) },
    ->(all) { all.limit(2) }, ->(all) { all.limit(1, 2) }, ->(all) { all.limit(2, 1) }, ->(all) { all.where(reader_id: 1) },
    ->(all) { all.where(reader_id: [1, 2]) }, ->(all) { all.where(reader_id: [1, 2, 2]) },
    ->(all) { all.where(Sequel.lit("id IN ? OR reader_id IN ?", [1, 2], [2])) },
    ->(all) { all.where(Sequel.lit("id IN ? OR reader_id IN ?", [1], [2, 2])) },
    ->(all) { all.where(Sequel.lit("title = ?", "title")) }, ->(all) { all.order_append(Sequel.desc(:title)) }
  ].freeze

  def test_clauses_in_any_combination_have_one_identity_only_with_one_sql
    combined = [1, 2, 3].flat_map { |size| CLAUSES.permutation(size).to_a }.sample(3_000, random: Random.new(1))
    found = Hash.new { |all, identity| all[identity] = Set.new }
    combined.each do |clauses|
      dataset = clauses.reduce(@book.dataset) { |all, clause| clause.call(all) }
      found[Identity.of(dataset, @book.dataset)] << dataset.sql
    end
    found.delete(nil)
    assert_operator found.size, :>, 1_000
    assert_empty(found.select { |_, sql| sql.size > 1 })
  end

  def test_conditions_of_other_values_have_one_shape
    assert_one_shape([1, 2, 3].map { |id| @book.where(reader_id: id).order(:title) })
    assert_one_shape([1, 2].map { |id| @book.where(Sequel.lit("reader_id = ?", id)) })
    assert_one_shape([1, 2].map { |id| @reader.load(id: id).books_dataset })
    assert_one_shape([1, 2].map { |id| @book.where { Sequel[reader_id > id] | { title: "a" } } })
  end

  def test_an_uncertain_scope_has_no_identity
    [@book.join(:readers, id: :reader_id), @book.where(title: Date.new(2026, 1, 2)), @book.for_update, @book.dataset.from_self,
     @book.where(title: Sequel.blob("a")), @book.dataset.with_extend { define_method(:select_sql) { "SELECT 1" } }].each do |dataset|
      assert_nil Identity.of(dataset, @book.dataset), dataset.sql
    end
  end

  private

  def assert_one_shape(datasets)
    shapes, values = datasets.map { |dataset| Identity.of(dataset, @book.dataset) }.transpose
    assert_equal [1, datasets.size], [shapes.uniq.size, values.uniq.size]
  end
end
