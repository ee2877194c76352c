# frozen_string_literal: true

require "test_helper"
require_relative "../rows/active_record_world"
require_relative "../rows/sequel_world"
require_relative "paged_dataset"

# A document keeps the limit, order and selected expressions of the caller's relation, whatever a client
# requests.
module ScopesOfTheCallerContract
  include ActiveRecordWorld::OwnWorld

  # Scribes, posts and comments.
  module World
    def self.of(base)
      base.connection.create_table(:scribes) { |table| table.string(:name) }
      base.connection.create_table(:scrolls) { |table| table.belongs_to(:scribe) && table.string(:title) && table.bigint(:copied_id) }
      base.connection.create_table(:stains) { |table| table.belongs_to(:scroll) }
      base.connection.execute("CREATE VIEW scroll_titles AS SELECT title AS shown, scribe_id FROM scrolls")
      world = ScopesOfTheCallerContract.const_set(:"On#{base.module_parent_name}", Module.new)
      scribe = world.const_set(:Scribe, Class.new(base) { self.table_name = "scribes" })
      scroll = world.const_set(:Scroll, Class.new(base) { self.table_name = "scrolls" })
      stain = world.const_set(:Stain, Class.new(base) { self.table_name = "stains" })
      scroll.belongs_to :scribe, class_name: scribe.name
      scroll.has_many :stains, class_name: stain.name
      stain.belongs_to :scroll, class_name: scroll.name
      scroll.belongs_to :copied, class_name: scroll.name, optional: true
      scroll.has_many :copies, class_name: scroll.name, foreign_key: :copied_id
      scroll.has_many :copied_copies, -> { where.associated(:copies).order(:id) }, class_name: scroll.name, foreign_key: :copied_id
      scribe.has_many :shouted, -> { select("scrolls.*, upper(title) AS title").order(:id) }, class_name: scroll.name
      world
    end
  end

  def setup
    [world::Stain, world::Scroll, world::Scribe].each(&:delete_all)
    ada, alan = %w[Ada Alan].map { |name| world::Scribe.create!(name: name) }
    @scrolls = Array.new(6) { |index| world::Scroll.create!(scribe: index.even? ? ada : alan, title: "Post #{5 - index}") }
    @scrolls.each_with_index { |post, index| ((index * 2) % 5).times { world::Stain.create!(scroll: post) } }
  end

  def test_pages_respect_the_limit_of_the_scope
    scope = world::Scroll.order(:id).limit(4).offset(1)
    assert_equal ids(@scrolls[1, 4]), (1..3).flat_map { |number| paged(scope, page: { number: number }) }
    assert_equal [[], 0], [paged(world::Scroll.limit(0)), total(world::Scroll.limit(0))]
    assert_equal 4, total(scope)
  end

  def test_sorting_a_limited_scope_keeps_its_rows
    assert_equal ids(@scrolls[1, 4].reverse), paged(world::Scroll.order(:id).limit(4).offset(1), sort: "title", page: { size: 9 })
    joined = world::Scroll.joins(:stains).order(:id).limit(2)
    assert_equal ids(@scrolls[1, 2].reverse), paged(joined, sort: "title", page: { size: 9 })
  end

  # `where.associated` uses the association's name as the table alias, which only this relation defines.
  def test_a_join_to_the_same_table_keeps_its_alias
    @scrolls[1].update!(copied: @scrolls[0])
    @scrolls[2].update!(copied: @scrolls[1])
    copied = world::Scroll.where.associated(:copied)
    [copied, copied.limit(1), world::Scroll.where.missing(:copied)].each do |scope|
      assert_equal ids(scope.order(:id)), paged(scope.order(:id), page: { size: 9 })
    end
    copies = resource(world::Scroll)
    copies.has_many(:copied_copies, resource: copies)
    linked = JSON.parse(copies.render(world::Scroll.order(:id)))["data"].map { |one| one["relationships"]["copied_copies"]["data"] }
    assert_equal(world::Scroll.order(:id).map { |one| ids(one.copied_copies) }, linked.map { |links| links.map { |link| link["id"] } })
  end

  def test_a_row_beyond_the_limit_is_not_found_by_id
    scope = world::Scroll.order(:id).limit(2).offset(1)
    resource = resource(world::Scroll)
    assert_equal([404, 200, 200, 404], @scrolls.first(4).map { |post| resource.document(scope, id: post.id).status })
  end

  # A caller may mask a column; clients cannot undo that.
  def test_an_expression_selected_as_a_column_applies_with_a_limit
    masked = world::Scroll.select("scrolls.*, '***' AS title")
    from = world::Scroll.from("(SELECT id, scribe_id, '***' AS title FROM scrolls) scrolls")
    joined = masked.joins(:stains)
    [masked, from, joined].each do |scope|
      limited = scope.order(:id).limit(3)
      resource = divided
      found = [resource.render(limited, page: { size: 9 }), resource.render(limited, sort: "title", page: { size: 9 })]
      found << resource.render(limited, id: JSON.parse(found.first)["data"].first["id"])
      titles = found.flat_map { |text| [JSON.parse(text)["data"]].flatten.map { |object| object["attributes"]["title"] } }
      assert_equal ["***"], titles.uniq, scope.to_sql
    end
  end

  def test_an_unnamed_expression_is_ignored
    [world::Scroll.select("scrolls.*, CASE WHEN id > 2 THEN 1 ELSE 0 END").order(Arel.sql("CASE WHEN id > 4 THEN 0 ELSE 1 END, id")),
     world::Scroll.select("scrolls.*, id * 100").order(Arel.sql("id % 100")),
     world::Scroll.select("scrolls.*, id IS NULL").order(Arel.sql("scribe_id IS NULL, id"))].each { |scope| assert_same_order(scope) }
  end

  # A backtracking regular expression would never finish here.
  def test_a_parenthesis_in_a_literal
    shown = "coalesce('(' || upper(title), #{(["lower(title)"] * 20).join(", ")})"
    assert_same_order(world::Scroll.select("scrolls.*, #{shown} AS shown").order("shown", :id))
  end

  def test_an_order_by_a_name_of_the_select
    table = world::Scroll.arel_table
    [world::Scroll.select("scrolls.*, title AS shown").order("shown"),
     world::Scroll.select("scrolls.*, title shown").order(shown: :desc),
     world::Scroll.select("scrolls.*, coalesce(title, 'a, b') AS shown").order("shown DESC", :id).limit(3),
     world::Scroll.select(table[Arel.star], table[:title].as("shown")).order(Arel.sql("shown desc")),
     world::Scroll.joins(:scribe).select("scrolls.*, scribes.name AS author_name").order("author_name DESC, scrolls.id").limit(4),
     world::Scroll.left_joins(:stains).select("scrolls.*, COUNT(stains.id) AS times").group("scrolls.id").order("times DESC, scrolls.id"),
     world::Scroll.joins(:stains).select("scrolls.*, COUNT(stains.id) AS times").group("scrolls.id").order(times: :desc, id: :asc).limit(2)]
      .each { |scope| assert_same_order(scope) }
  end

  # A view has no key: its pages are ordered by the declared id.
  def test_pages_of_a_view_without_a_key
    view = Class.new(world::Scroll.superclass) { self.table_name = "scroll_titles" }
    resource = Class.new(Castellan::Resource) do
      model view
      type "titles"
      id :shown
      page size: 4, max_size: 9, count: true
    end
    pages = (1..2).map { |number| read(resource.render(page: { number: number })) }
    assert_equal [["Post 0", "Post 1", "Post 2", "Post 3"], ["Post 4", "Post 5"]], pages
    assert_equal 6, JSON.parse(resource.render)["meta"]["total"]
    assert_equal 3, JSON.parse(resource.render(view.limit(3)))["meta"]["total"]
  end

  def test_a_locked_scope_is_counted
    assert_equal 6, total(world::Scroll.lock)
  end

  def test_verify_considers_the_selected_expressions_and_joins_of_the_caller
    multiplied = world::Scroll.joins(:stains).order(:id).limit(2)
    [world::Scroll.select("scrolls.*, 'shown' AS title"), world::Scroll.select(:id), multiplied].each do |scope|
      result = Castellan.verify { resource(world::Scroll).render(scope) }
      assert_predicate result, :same?, "#{scope.to_sql}\n#{result}"
    end
  end

  # An association whose scope selects another expression as a column loads models.
  def test_a_renaming_association
    scrolls = resource(world::Scroll)
    scribes = resource(world::Scribe) { has_many :shouted, resource: scrolls }
    included = JSON.parse(scribes.render(world::Scribe.order(:id), include: :shouted))["included"]
    written = included.map { |object| object["attributes"]["title"] }
    assert_equal world::Scribe.order(:id).flat_map { |scribe| scribe.shouted.map(&:title) }, written
    assert_includes scribes.document(include: :shouted).explain, "selects something else"
  end

  private

  def assert_same_order(scope)
    expected = ids(scope.to_a)
    resource = resource(world::Scroll)
    assert_equal expected, read(resource.render(scope)), scope.to_sql
    assert_equal expected, read(resource.document(scope).stream.each.to_a.join), scope.to_sql
    assert_equal expected, paged(scope, page: { size: 9 }), scope.to_sql
    assert_equal expected.size, total(scope), scope.to_sql
  end

  def ids(records) = records.map { |record| record.id.to_s }
  def read(text) = JSON.parse(text)["data"].map { |object| object["id"] }
  def paged(scope, **asked) = read(divided.render(scope, **asked))
  def total(scope) = JSON.parse(divided.render(scope))["meta"]["total"]

  def divided
    resource(world::Scroll) do
      sort :title
      page size: 2, max_size: 9, count: true
    end
  end

  def resource(model, &block)
    Class.new(Castellan::Resource) do
      model model
      type model.table_name
      attributes :title if model.column_names.include?("title")
      class_exec(&block) if block
    end
  end
end

class ScopesOfTheCallerOnSqliteTest < Minitest::Test
  include ScopesOfTheCallerContract
  include ActiveRecordWorld::OnSqlite
end

class ScopesOfTheCallerOnPostgresTest < Minitest::Test
  include ScopesOfTheCallerContract
  include ActiveRecordWorld::OnPostgres
end

# The same for a dataset of Sequel.
class DatasetsOfTheCallerTest < Minitest::Test
  include PagedDataset

  def create
    @database.create_table(:letters) {
      primary_key :id
      String :subject
    }
    @database[:letters].multi_insert(Array.new(6) { |index| { subject: "Letter #{5 - index}" } })
  end

  def model = Class.new(Sequel::Model(@database[:letters]))

  def test_the_limit_of_a_dataset_applies
    scope = @model.order(:id).limit(4).offset(1)
    assert_equal %w[2 3 4 5], pages(scope, 3)
    assert_equal %w[5 4 3 2], ids(scope, sort: "subject", page: { size: 9 })
    assert_equal 4, JSON.parse(@resource.render(scope))["meta"]["total"]
    assert_equal([404, 200, 404], [1, 2, 6].map { |id| @resource.document(scope, id: id).status })
    assert_empty ids(scope, page: { number: 4 })
  end

  # Neither dataset names the model's table.
  def test_a_union_and_custom_sql_replace_the_table_of_the_model
    union = @model.where(id: [1, 2]).union(@model.where(id: [5, 6]))
    own = @model.with_sql("SELECT * FROM letters WHERE id IN (1, 2, 5, 6)")
    [union, union.order(Sequel.desc(:id)), own].each do |scope|
      assert_equal scope.map { |letter| letter.id.to_s }, pages(scope, 2)
      assert_equal %w[6 5 2 1], ids(scope, sort: "subject", page: { size: 9 })
      assert_equal 4, JSON.parse(@resource.render(scope))["meta"]["total"]
      assert_equal([200, 404], [1, 3].map { |id| @resource.document(scope, id: id).status })
      assert_predicate Castellan.verify { @resource.render(scope) }, :same?
    end
  end

  def test_order_and_limit_of_a_union_and_of_custom_sql_are_kept
    union = @model.where(id: [1, 2]).union(@model.where(id: [3, 5, 6]))
    [union.order(Sequel.desc(:id)).limit(3), union.order(Sequel.desc(Sequel[:t1][:id])), union.order(Sequel.desc(:id)).offset(2),
     @model.order(:subject).from_self, @model.order(:subject).limit(3).from_self, @model.select(:id, :subject).reverse(:id).from_self,
     @model.with_sql("SELECT * FROM letters ORDER BY id DESC LIMIT 4")].each do |scope|
      expected = scope.map { |letter| letter.id.to_s }
      assert_equal expected, pages(scope, 3), scope.sql
      assert_equal expected, ids(scope, page: { size: 9 }), scope.sql
      assert_equal expected, streamed(scope), scope.sql
      assert_equal expected.sort.reverse, ids(scope, sort: "subject", page: { size: 9 }), scope.sql
    end
  end

  def test_a_filter_may_return_a_union
    @resource.filter(:other) { |_, _| [1] }
    @resource.filter(:number) { |scope, numbers| scope.where(id: numbers.first).union(scope.where(id: numbers.last)) }
    assert_equal %w[2 5], ids(@model, filter: { number: %w[5 2] }).sort
    assert_raises(Castellan::ConfigurationError) { ids(@model, filter: { other: %w[1] }) }
  end

  def test_a_repeated_row_of_a_union_or_custom_sql_is_written_once
    all = @model.where(id: [1, 2]).union(@model.where(id: [1]), all: true)
    twice = @model.with_sql("SELECT letters.* FROM letters JOIN (SELECT 1 AS n UNION ALL SELECT 2) two ON 1 = 1 WHERE id < 3 ORDER BY id")
    [all, twice].each do |scope|
      assert_equal %w[1 2], pages(scope, 2).sort
      assert_equal %w[1 2], streamed(scope).sort
      assert_equal 2, JSON.parse(@resource.render(scope))["meta"]["total"]
    end
  end

  def test_verify_selects_all_columns_of_a_partial_select
    result = Castellan.verify { @resource.render(@model.select(:id).order(:id)) }
    assert_predicate result, :same?, result.to_s
    assert_includes result.value, "Letter 5"
  end

  def test_an_expression_selected_as_a_column_applies_with_a_limit
    masked = @model.select_all(:letters).select_append(Sequel.as("***", :subject)).order(:id).limit(3)
    found = [@resource.render(masked, page: { size: 9 }), @resource.render(masked, sort: "subject", page: { size: 9 }),
             @resource.render(masked, id: "1")]
    assert_equal ["***"], found.flat_map { |text| [JSON.parse(text)["data"]].flatten.map { |one| one["attributes"]["subject"] } }.uniq
  end

  def test_an_order_by_a_name_of_its_select
    scope = @model.select_all(:letters).select_append(Sequel.function(:upper, :subject).as(:shown)).order(Sequel.desc(:shown), :id)
    assert_equal scope.map { |letter| letter.id.to_s }, ids(scope, page: { size: 9 })
    plain = Class.new(Castellan::Resource).tap { |resource| resource.type("letters") && resource.model(@model) && resource.attributes(:subject) }
    assert_equal scope.map { |letter| letter.id.to_s }, JSON.parse(plain.render(scope))["data"].map { |object| object["id"] }
  end

  def test_an_order_by_a_name_of_a_group
    count = Sequel.function(:max, Sequel[:letters][:subject]).as(:most)
    scope = @model.join(Sequel[:letters].as(:others), id: :id).select_all(:letters).select_append(count)
    scope = scope.group(Sequel[:letters][:id]).order(Sequel.desc(:most))
    plain = Class.new(@resource) { page size: 9 }
    assert_equal scope.map { |letter| letter.id.to_s }, ids(scope, page: { size: 9 })
    result = Castellan.verify { plain.render(scope) }
    assert_predicate result, :same?, result.to_s
  end

  def test_a_locked_dataset_is_counted_without_the_lock
    needs :postgres
    tags = SequelWorld.postgres::Tag
    assert_equal tags.count, Castellan::Rows::SequelRows.for(tags).scopes.count(tags.for_update)
  end
end
