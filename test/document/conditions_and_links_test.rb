# frozen_string_literal: true

require "test_helper"
require "document/library"

# Conditional members, links and meta objects are the same from rows and from records.
module ConditionsAndLinksContract
  Viewer = Struct.new(:id, :admin)

  def setup
    library.fill
  end

  def test_a_viewer_condition_is_called_once_per_document
    asked = 0
    resource = articles { attribute(:position, if: ->(viewer) { (asked += 1) && viewer&.admin }) }
    each_source do |given|
      asked = 0
      assert_equal [%w[title position]], keys(resource, given, Viewer.new(1, true))
      assert_equal [%w[title]], keys(resource, given, Viewer.new(1, false))
      assert_equal [%w[title]], keys(resource, given, nil)
      assert_equal 3, asked
    end
  end

  def test_fields_cannot_reveal_an_attribute_hidden_from_the_viewer
    resource = articles { attribute :position, if: ->(viewer) { viewer } }
    query = { "fields" => { "articles" => "position,title" } }
    assert_equal [%w[title]], documents(resource, resource.model_scope, query: query).map { |one| one["attributes"].keys }.uniq
  end

  def test_a_relationship_hidden_from_the_viewer_is_neither_linked_nor_included
    resource = articles { belongs_to :author, resource: "AuthorResource", if: ->(viewer) { viewer } }
    each_source do |given|
      document = JSON.parse(resource.render(given, include: "author"))
      assert_equal [[], nil], [document["included"], document["data"][0]["relationships"]]
      assert_nil JSON.parse(resource.render(given, include: :author))["included"]
      refute_empty JSON.parse(resource.render(given, include: "author", viewer: 1))["included"]
    end
  end

  def test_sort_cannot_reveal_an_attribute_hidden_from_the_viewer
    resource = articles do
      attribute :position, if: ->(viewer) { viewer }
      sort :title, :position, default: "-position"
    end
    assert_equal %w[1 2], documents(resource, :all).first(2).map { |one| one["id"] }
    assert_equal %w[7 6], documents(resource, :all, viewer: 1, query: { sort: "position" }).first(2).map { |one| one["id"] }
    error = assert_raises(Castellan::BadRequest) { resource.document(query: { sort: "title,-position" }) }
    assert_equal ["sort", 'articles cannot be sorted by "position" (there is: title)'], [error.parameter, error.message]
    assert_equal %w[7 6], documents(resource, :all, sort: "position").first(2).map { |one| one["id"] }, "the developer may"
  end

  def test_columns_and_filters_cannot_reveal_an_attribute_hidden_from_the_viewer
    resource = articles do
      attribute(:place, columns: %i[position], if: ->(viewer) { viewer }, &:position)
      sort :title, :position
      filter(:place) { |scope, values| scope.where(position: values) }
      filter(:title) { |scope, values| scope.where(title: values) }
    end
    { { sort: "position" } => ["sort", 'articles cannot be sorted by "position" (there is: title)'],
      { filter: { place: "1" } } => ["filter[place]", 'articles cannot be filtered by "place" (there is: title)'] }.each do |query, told|
      assert_equal 200, resource.document(query: query, viewer: 1).status
      error = assert_raises(Castellan::BadRequest) { resource.document(query: query) }
      assert_equal told, [error.parameter, error.message]
      assert_equal 200, resource.document(**query).status, "the developer may"
    end
  end

  def test_shapes_for_different_viewers_are_different_plans
    resource = articles { attribute :position, if: ->(viewer) { viewer } }
    plans = [1, nil, 2, nil].map { |viewer| resource.document(viewer: viewer).rendering.plan }
    assert_equal 2, plans.uniq.size
    assert_same plans[1], plans[3]
  end

  def test_a_condition_of_named_columns_is_called_per_row_without_models
    resource = articles { attribute :position, if: ->(row, viewer) { row.author_id == viewer }, if_columns: %i[author_id] }
    each_source do |given|
      found = documents(resource, given, viewer: 2).to_h { |one| [one["id"].to_i, one["attributes"].key?("position")] }
      assert_equal((1..7).to_h { |id| [id, (id % 3) + 1 == 2] }, found)
    end
    refute_includes resource.document.explain, "models of this type are loaded"
  end

  def test_a_method_may_replace_a_block
    shown = Class.new { def call(row, viewer) = row.author_id == viewer }.new
    path = Class.new { def self.of(row) = "/by/#{row.author_id}" }.method(:of)
    [shown, shown.method(:call)].each do |condition|
      resource = articles do
        attribute :position, if: condition, if_columns: %i[author_id]
        link :by, columns: %i[author_id], &path
        belongs_to :author, resource: "AuthorResource", links: { self: path }, meta: ->(_) { {} }, columns: %i[author_id]
      end
      each_source do |given|
        found = documents(resource, given, viewer: 2).first(2)
        assert_equal([true, false], found.map { |one| one["attributes"].key?("position") })
        assert_equal %w[/by/2 /by/3], found.map { |one| one.dig("relationships", "author", "links", "self") }
      end
    end
  end

  def test_any_condition_with_one_argument_receives_the_viewer
    [->(viewer = nil) { viewer == 1 }, ->(*viewers) { viewers == [1] }, :positive?.to_proc, 1.method(:==)].each do |condition|
      resource = articles { attribute :position, if: condition }
      each_source do |given|
        assert_equal [[%w[title position]], [%w[title]]], [1, -1].map { |viewer| keys(resource, given, viewer) }
      end
    end
  end

  def test_columns_of_links_leave_a_viewer_condition_independent_of_rows
    resource = articles do
      belongs_to :author, resource: "AuthorResource", if: ->(viewer) { viewer }, links: { self: ->(row) { "/#{row.id}" } }, columns: %i[id]
    end
    each_source do |given|
      assert_equal [true, false], [1, nil].map { |viewer| documents(resource, given, viewer: viewer).first.key?("relationships") }
    end
  end

  def test_a_condition_of_the_record_loads_models_for_the_type
    resource = articles { attribute(:position, if: ->(article, viewer) { article.author.name == viewer }) }
    each_source do |given|
      found = documents(resource, given, viewer: "Grace").select { |one| one["attributes"].key?("position") }
      assert_equal %w[1 4 7], found.map { |one| one["id"] }.sort
    end
    assert_includes resource.document.explain, "if position: its block takes the record"
  end

  def test_sparse_fields_that_leave_out_a_relationship_hidden_from_a_row_include_no_record
    resource = articles { belongs_to(:author, resource: "AuthorResource", columns: %i[id], if: ->(article, _viewer) { article.id == 1 }) }
    all = { "include" => "author" }
    titles = { **all, "fields" => { "articles" => "title" } }
    each_source do |given|
      included = [all, titles].map { |query| JSON.parse(resource.render(given, query: query))["included"].map { |one| one["id"] } }
      assert_equal [1, 1], included.map(&:size)
      assert_equal(*included)
    end
  end

  def test_a_relationship_hidden_from_a_row_includes_no_record
    resource = articles do
      belongs_to :author, resource: "AuthorResource", if: ->(row, viewer) { row.id == viewer }, columns: %i[id]
    end
    each_source do |given|
      document = JSON.parse(resource.render(given, viewer: 3, include: "author"))
      linked = document["data"].select { |one| one.key?("relationships") }
      assert_equal [%w[3], %w[1]], [linked.map { |one| one["id"] }, document["included"].map { |one| one["id"] }]
    end
  end

  def test_the_last_member_may_be_hidden
    resource = articles do
      attribute :position, if: ->(_, _) { false }, if_columns: []
      has_many :comments, resource: "CommentResource", if: ->(_, _) { false }, columns: []
    end
    each_source { |given| assert_equal [%w[attributes id type]], documents(resource, given).map { |one| one.keys.sort }.uniq }
    bare = Class.new(Castellan::Resource) { attributes :title, if: ->(_, _) { false }, if_columns: [] }
    bare.model(library.models::Article)
    assert_equal [%w[id type]], documents(bare, :all).map { |one| one.keys.sort }.uniq
  end

  def test_links_and_meta_of_a_resource
    resource = articles do
      link :self, "/articles/{id}?by={title}"
      link(:mine, columns: %i[author_id]) { |row, viewer| { href: "/viewers/#{viewer}/#{row.author_id}" } }
      link :docs, { href: "https://example.com/?a=1&b=2" }
      meta(columns: %i[position]) { |row| { place: row.position } }
    end
    each_source do |given|
      article = documents(resource, given, viewer: 9).find { |one| one["id"] == "2" }
      assert_equal({ "self" => "/articles/2?by=Title%202", "mine" => { "href" => "/viewers/9/3" },
                     "docs" => { "href" => "https://example.com/?a=1&b=2" } }, article["links"])
      assert_equal({ "place" => 8 }, article["meta"])
    end
  end

  def test_links_and_meta_of_a_relationship
    resource = articles do
      has_many :comments, resource: "CommentResource", lazy: true, links: { related: "/articles/{id}/comments" }
      belongs_to :author, resource: "AuthorResource", columns: %i[id],
                          links: { self: ->(row) { "/a/#{row.id}" } }, meta: ->(_row, viewer) { { for: viewer } }
    end
    each_source do |given|
      article = documents(resource, given, viewer: "me").find { |one| one["id"] == "2" }["relationships"]
      assert_equal({ "links" => { "related" => "/articles/2/comments" } }, article["comments"])
      assert_equal({ "data" => { "type" => "authors", "id" => "3" }, "links" => { "self" => "/a/2" }, "meta" => { "for" => "me" } },
                   article["author"])
      included = JSON.parse(resource.render(given, include: "comments"))
      assert_equal 2, included["data"].find { |one| one["id"] == "1" }.dig("relationships", "comments", "data").size
    end
  end

  def test_meta_without_links
    resource = articles do
      meta(columns: %i[position]) { |row| { place: row.position } }
      belongs_to :author, resource: "AuthorResource", meta: ->(row) { { of: row.id } }, columns: %i[id]
    end
    each_source do |given|
      article = documents(resource, given).find { |one| one["id"] == "2" }
      assert_equal [{ "place" => 8 }, { "of" => 2 }], [article["meta"], article.dig("relationships", "author", "meta")]
      refute article.key?("links")
    end
  end

  def test_linkage_that_is_written_only_when_included_is_not_read
    resource = articles { has_many :comments, :tags, lazy: true }
    assert_empty(library.queries { resource.render }.grep(/comments|tags/))
    each_source { |given| refute(documents(resource, given).any? { |one| one.key?("relationships") }) }
    included = JSON.parse(resource.render(include: "comments"))["data"]
    assert_equal([%w[comments]], included.map { |one| one["relationships"].keys }.uniq)
  end

  def test_a_lazy_relationship_is_never_an_empty_object
    resource = articles { has_many :comments, lazy: true, meta: ->(row) { { of: row.id } if row.id == 1 }, columns: %i[id] }
    each_source do |given|
      found = documents(resource, given).to_h { |one| [one["id"], one["relationships"]["comments"]] }
      assert_equal [{ "meta" => { "of" => 1 } }, { "meta" => {} }], found.values_at("1", "2")
    end
  end

  def test_a_block_may_read_the_record_for_a_link
    resource = articles { link(:author) { |article| "/by/#{article.author.name}" } }
    each_source { |given| assert_equal "/by/Edsger", documents(resource, given).find { |one| one["id"] == "2" }["links"]["author"] }
  end

  def test_the_nested_format_has_conditions_and_no_links
    resource = articles do
      format :nested
      link :self, "/articles/{id}"
      attribute :position, if: ->(row, _) { row.id == 1 }, if_columns: %i[id]
      has_many :comments, resource: "CommentResource", if: ->(row, _) { row.id == 1 }, columns: %i[id]
    end
    each_source do |given|
      found = JSON.parse(resource.render(given, include: "comments")).sort_by { |one| one["id"] }
      assert_equal [%w[id title position comments], %w[id title]], found.first(2).map(&:keys)
      assert_equal 2, found.first["comments"].size
    end
  end

  def test_key_transforms_apply_to_members_and_parameters
    { dash: "author-name", camel: "AuthorName", camel_lower: "authorName", underscore: "author_name",
      none: "author_name" }.each do |way, key|
      resource = articles do
        key_transform way
        attribute :author_name, from: "author.name"
      end
      each_source do |given|
        assert_equal [[key]], documents(resource, given, fields: { articles: key }).map { |one| one["attributes"].keys }.uniq
      end
    end
  end

  def test_the_same_bytes_in_pieces
    resource = articles do
      link :self, "/articles/{id}"
      has_many :comments, resource: "CommentResource", if: ->(row, _) { row.id > 1 }, columns: %i[id]
    end
    assert_equal resource.render(include: "comments"), resource.document(include: "comments").stream(size: 2).each.to_a.join
  end

  def test_a_document_with_row_or_viewer_conditions_is_never_cached
    [articles { attribute :position, if: ->(row, viewer) { row.id == viewer }, if_columns: %i[id] },
     articles { link(:mine, columns: %i[id]) { |row, viewer| "/#{viewer}/#{row.id}" } }].each do |resource|
      refute_empty resource.document.rendering.unkeepable
    end
    assert_empty articles { link :self, "/{id}" }.document.rendering.unkeepable
  end

  def test_an_unwritable_value_is_named_with_its_record
    { link: -> { link(:self, columns: %i[id]) { |row| row.id == 2 ? "/\xFF" : "/" } },
      meta: -> { meta(columns: %i[id]) { |row| { a: row.id == 2 ? "\xFF" : 1 } } },
      headline: -> { attribute(:headline, columns: %i[id]) { |row| row.id == 2 ? "\xFF" : 1 } },
      shout: -> { attribute(:shout) { |article| article.id == 2 ? ["\xFF"] : 1 } } }.each do |name, body|
      each_source do |given|
        error = assert_raises(Castellan::EncodingError) { articles(&body).render(given) }
        assert_match(/\Aarticles "2", member "(?:#{name}|links|meta)": .*let the block return what is to be written\z/m, error.message)
      end
    end
  end

  def test_declaration_errors_name_the_fix
    { "write either a text or a block" => -> { link(:self, "/x") { "/y" } }, "meta: write either a Hash or a block" => -> { meta },
      "if: must be a block of the viewer" => -> { attribute :title, if: true },
      "or of the row and the viewer, got" => -> { attribute :title, if: -> { true } } }.each do |text, body|
      error = assert_raises(Castellan::DeclarationError) { articles(&body) }
      assert_includes error.message, text
      assert_match(/\(#{Regexp.escape(__FILE__)}:\d+\)\z/, error.message)
    end
  end

  private

  def each_source(&block)
    source = library.models::Article
    [source.order(:id), source.order(:id).to_a].each(&block)
  end

  def articles(&body)
    models = library.models
    Class.new(Castellan::Resource) do
      model models::Article
      type "articles"
      define_singleton_method(:name) { "#{models.name}::Conditional" }
      define_singleton_method(:model_scope) { models::Article.order(:id) }
      attributes :title
      class_exec(&body)
    end
  end

  def documents(resource, given, **options) = JSON.parse(resource.render(given, **options))["data"]

  def keys(resource, given, viewer) = documents(resource, given, viewer: viewer).map { |one| one["attributes"].keys }.uniq
end

class ConditionsAndLinksOnActiveRecordTest < Minitest::Test
  include ConditionsAndLinksContract

  def library = Library.active_record(:sqlite)
end

class ConditionsAndLinksOnSequelTest < Minitest::Test
  include ConditionsAndLinksContract

  def library = Library.sequel(:sqlite)
end
