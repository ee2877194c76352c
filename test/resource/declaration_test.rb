# frozen_string_literal: true

require "test_helper"
require "rack/mock_request"
require "document/library"

# Declarations and their errors, which name the file, the line and the nearest valid name.
class DeclarationTest < Minitest::Test
  def models = Library.active_record(:sqlite).models

  # The class methods of an application's resource may have any other name.
  def test_the_public_methods_of_a_resource_are_the_documented_ones
    ours = [Castellan::Document::OfResource, Castellan::Resource.singleton_class]
    assert_equal(%i[inherited], ours.flat_map { |one| one.private_instance_methods(false) })
    assert_equal %i[attribute attributes authorize belongs_to cache cache_control checked_rows declarations definition deletable descendants
                    document filter format has_many has_one id include_depth key_transform link meta model new page per_viewer pure render
                    representation require_if_match scope self_links sort together type types vary_on visible_to writable],
                 ours.flat_map { |one| one.public_instance_methods(false) }.sort
  end

  class CampusResource < Castellan::Resource
    type "campuses"
  end

  class StudentResource < Castellan::Resource
    type "students"
    belongs_to :campus
  end

  def test_the_name_of_a_to_one_relationship_is_singular_already
    assert_equal CampusResource, StudentResource.definition.relationships.fetch(:campus).resource
  end

  def test_new_raises_and_names_the_method_to_call
    error = assert_raises(Castellan::ConfigurationError) { models::TagResource.new(models::Tag.new) }
    assert_includes error.message, "TagResource.document(record)"
    assert_includes error.message, "TagResource.render(record)"
  end

  def test_declaration_errors_begin_with_the_name_of_the_resource
    wrong = [proc { attribute :type }, proc { format :xml }, proc { page size: 0 }, proc { filter }, proc { link :self },
             proc { attribute :title, if: 1 }, proc { has_many :tags, if: 1 }, proc { attribute :title, columns: %i[title] },
             proc { model Object.new }]
    wrong.each do |body|
      resource = Class.new(Castellan::Resource) { def self.name = "WrongResource" }
      error = assert_raises(Castellan::DeclarationError) do
        resource.class_eval(&body)
        resource.type :wrong
        resource.checked_rows
      end
      assert_match(/\AWrongResource /, error.message)
    end
  end

  def test_type_id_and_names_default_to_those_of_the_model
    definition = declare { attributes :title }
    assert_equal [:id, %i[title], "title"], [definition.id_column, definition.members, definition.attributes[:title].key]
    assert_equal "active_record_library_sqlite_articles", definition.type
    assert_equal "articles", declare { type :articles }.type
    assert_equal :title, declare { id :title }.id_column
  end

  def test_each_kind_of_attribute_has_a_source
    found = declare do
      attributes :title
      attribute :author_name, from: "author.name"
      attribute :mentor_name, from: { author: { mentor: :name } }
      attribute(:headline, columns: :title) { |row| row.title }
      attribute(:shout) { |record| record.title.upcase }
      per_viewer(:read) { |ids, _viewer| ids }
    end.attributes
    assert_equal({ title: :column, author_name: :path, mentor_name: :path, headline: :computed, shout: :record, read: :viewer },
                 found.transform_values(&:source))
    assert_equal [%i[author mentor], %i[name]], found[:mentor_name].to_h.values_at(:path, :columns)
    assert(found.each_value.all?(&:frozen?))
  end

  def test_an_attribute_may_be_another_column
    assert_equal [[], %i[body]], declare { attribute :text, from: :body }.attributes[:text].to_h.values_at(:path, :columns)
    assert_equal "Body 1", JSON.parse(render(1) { attribute :text, from: "body" }).dig("data", "attributes", "text")
  end

  def test_keys_are_transformed
    names = %i[none dash camel camel_lower underscore].to_h do |way|
      definition = declare {
        key_transform way
        attribute :last_title, from: "title"
        has_many :comments
      }
      [way, definition.attributes[:last_title].key]
    end
    assert_equal({ none: "last_title", dash: "last-title", camel: "LastTitle", camel_lower: "lastTitle", underscore: "last_title" }, names)
    document = JSON.parse(render(1, fields: { "articles" => "last-title" }) {
      type "articles"
      key_transform :dash
      attribute :last_title, from: "title"
    })
    assert_equal({ "last-title" => "Title 1" }, document["data"]["attributes"])
  end

  def test_a_resource_inherits_without_changing_its_superclass
    parent = resource {
      attributes :title, :body
      has_many :comments
      sort :title
      page size: 2
      representation :short, only: %i[title]
    }
    child = Class.new(parent) {
      attribute(:body, columns: :body) { |row|
        row.body.upcase
      }
      attributes :position
      page size: 5
      sort :position
    }
    assert_equal [%i[title body position comments], 5, %w[title position]],
                 [child.definition.members, child.definition.paging.size, child.definition.sorts.keys]
    assert_equal [%i[title body comments], 2, %w[title], :column], [parent.definition.members, parent.definition.paging.size,
                                                                    parent.definition.sorts.keys,
                                                                    parent.definition.attributes[:body].source]
    assert_equal child.definition.representations, parent.definition.representations
  end

  def test_a_subclass_narrows_what_is_writable
    parent = resource {
      attributes :title, :body, :position
      writable :title, :body
      writable :position
    }
    child = Class.new(parent) {
      writable :title, on: :create
      writable(:position, on: :create) { |viewer| viewer }
      writable(:position, on: :update) { |viewer| viewer == 1 }
    }
    writable = ->(one, viewer) { %i[create update].map { |action| one.definition.writing.names(action, viewer) } }
    assert_equal [%i[title body position]] * 2, writable[parent, nil]
    assert_equal [%i[body title], %i[body]], writable[child, nil]
    assert_equal [%i[body title position], %i[body position]], writable[child, 1]
    assert_equal [%i[body]], [Class.new(parent) { writable(:title, :position) { false } }.definition.writing.names(:create, 1)]
  end

  def test_a_subclass_may_declare_an_attribute_where_its_superclass_has_a_relationship
    child = Class.new(resource { has_many :comments }) { attribute(:comments, columns: :title) { |row| row.title } }
    assert_equal [%i[comments], {}], [child.definition.attributes.keys, child.definition.relationships]
  end

  def test_a_declaration_after_the_first_use_raises
    used = resource { attributes :title }
    used.definition
    assert_match(/in use/, assert_raises(Castellan::ConfigurationError) { used.attributes :body }.message)
    assert_predicate used.definition, :frozen?
  end

  def test_definitions_are_one_object_for_all_threads
    fresh = resource { attributes :title }
    assert_equal 1, Array.new(8) { Thread.new { fresh.definition } }.map { |thread| thread.value.object_id }.uniq.size
  end

  MISTAKES = {
    "did you mean title?" => -> { attributes :titel },
    "articles has no column save, but the model has a method of that name: write attribute(:save) { |record| record.save }" =>
      -> { attribute :save },
    "filter save: articles has no column save, but the model has a method of that name: give filter(:save) a block" => -> { filter :save },
    "sort save: articles has no column save, but the model has a method of that name, which rows do not have" => -> { sort :save },
    "articles has no association auther (did you mean author?)" => -> { attribute :a, from: "auther.name" },
    "authors has no column nam (did you mean name?)" => -> { attribute :a, from: "author.nam" },
    "comments is a to-many association, and from: walks to-one associations only" => -> { attribute :a, from: "comments.body" },
    "attribute :a: articles has no column titl (did you mean title?)" => -> { attribute(:a, columns: %i[titl]) { |row| row } },
    "articles has no association coments (did you mean comments?)" => -> { has_many :coments, resource: "CommentResource" },
    "articles has no association comment (did you mean comments?)" => -> { has_many :comment, resource: 1 },
    "comments is a has_many association; declare it as has_many" => -> { has_one :comments },
    "author is a belongs_to association; declare it as has_one or belongs_to" => -> { has_many :author },
    "needs TagsResource, which is not defined (did you mean" => -> { has_many :tags, resource: "TagsResource" },
    "sort positon: articles has no column positon (did you mean position?)" => -> { sort :positon },
    "sort default: \"-titel\" names titel, which cannot be sorted by (did you mean title?)" => -> { sort :title, default: "-titel" },
    "representation :short names :titel, which is not declared (did you mean title?)" => -> {
      attributes :title
      representation :short, only: %i[titel]
    },
    "attribute :a: from: is read as it is; leave out columns: and the block" => -> { attribute(:a, from: "title") { |row| row } },
    "attribute :a: preloads: is for a block that takes the record; leave out columns:" =>
      -> { attribute(:a, columns: %i[title], preloads: :author) { |row| row } },
    "attribute :a: columns: needs a block that reads them" => -> { attribute :a, columns: %i[title] },
    "from: \"title\" is the attribute itself; leave from: out" => -> { attribute :title, from: "title" },
    "per_viewer(:read) needs a block" => -> { per_viewer :read },
    "per_viewer :read, version: the database of articles has no table coments" =>
      -> { per_viewer(:read, version: :coments) { [] } },
    "per_viewer :read, version: comments has no column articl_id (did you mean article_id?)" =>
      -> { per_viewer(:read, version: { comments: :articl_id }) { [] } },
    "filter: name what clients may filter by" => -> { filter },
    "filter :role, :tag: a block or from: is for one name; declare each by itself" => -> { filter(:role, :tag) { |scope, _| scope } },
    "filter :role: from: names a column; leave out the block" => -> { filter(:role, from: "title") { |scope, _| scope } },
    "filter titel: articles has no column titel (did you mean title?)" => -> { filter :title, :titel },
    "filter tag: tags is a to-many association, and from: walks to-one associations only" => -> { filter :tag, from: "tags.name" },
    "sort author: authors has no column nam (did you mean name?)" => -> { sort :author, from: "author.nam" },
    "sort :author, :writer: from: is for one name; declare each by itself" => -> { sort :author, :writer, from: "author.name" },
    "write whole numbers with 1 <= size <= max_size" => -> { page size: 10, max_size: 5 },
    "cache :exactly is not known (did you mean exact?)" => -> { cache :exactly },
    "cache layer: :record: Castellan caches whole documents only; leave layer: out" =>
      -> { cache :exact, layer: :record },
    "format :nest is not known (did you mean nested?)" => -> { format :nest },
    "key_transform :dashed is not known (did you mean dash?)" => -> { key_transform :dashed },
    ":id cannot be an attribute or a relationship" => -> { attributes :id },
    ":type cannot be an attribute or a relationship" => -> { has_many :type },
    "type \"the articles\": write letters and digits" => -> { type "the articles" },
    "\"title!\" cannot be the name of a member" => -> { attribute(:title!, columns: :title) { |row| row } },
    ":tags cannot be an attribute and a relationship: give one" => lambda {
      has_many :tags
      attribute(:tags, columns: :title) { |row| row }
    },
    ":title cannot be an attribute and a relationship" => lambda {
      attributes :title
      has_many :title, from: :tags
    },
    ":first_name and :\"first-name\" would both be written as \"first-name\"" => lambda {
      key_transform :dash
      attribute(:first_name, columns: :title) { |row| row }
      attribute(:"first-name", columns: :title) { |row| row }
    }
  }.freeze

  def test_each_error_names_the_file_the_line_and_the_fix
    MISTAKES.each do |text, body|
      error = assert_raises(Castellan::DeclarationError, text) { resource(&body).checked_rows }
      assert_includes plain(error), text
      assert_match(/\(#{Regexp.escape(__FILE__)}:\d+\)\z/, error.message)
      assert_includes body.source_location.last..(body.source_location.last + 4), error.location[/\d+\z/].to_i, text
    end
  end

  def test_a_subclass_may_replace_an_inherited_attribute_by_a_relationship
    base = resource { attributes :title }
    replaced = Class.new(base) { has_many :title, from: :tags }
    assert_equal [[], [:title]], [replaced.definition.attributes.keys, replaced.definition.relationships.keys]
    assert_raises(Castellan::DeclarationError) { Class.new(base) { has_many(:title, from: :tags) && attributes(:title) } }
    assert_equal [[:title], []], [base.definition.attributes.keys, base.definition.relationships.keys]
  end

  def test_the_id_column_must_exist
    assert_includes plain(assert_raises(Castellan::DeclarationError) {
      resource {
        id :ident
      }.checked_rows
    }), "id: articles has no column ident"
  end

  def test_a_resource_without_a_model_needs_records_and_a_name_or_a_type
    assert_includes assert_raises(Castellan::DeclarationError) { Class.new(Castellan::Resource).definition }.message, "needs a type"
    plain = Class.new(Castellan::Resource) { type "things" }
    assert_includes assert_raises(Castellan::ConfigurationError) { plain.document }.message, "has no model: write `model User`"
  end

  def test_a_resource_without_a_model_is_served_from_the_records_of_its_scope
    things = Class.new(Castellan::Resource) do
      type "things"
      attributes :name
    end
    app = Castellan.app { resource things, scope: ->(_viewer) { [{ id: 1, name: "Keep" }] } }
    assert_includes Rack::MockRequest.new(app).get("/things").body, '{"type":"things","id":"1","attributes":{"name":"Keep"}}'
  end

  def test_a_resource_of_a_second_database_may_declare_what_the_main_one_has
    needs :postgres
    script = <<~RUBY
      require "active_record"
      require "castellan"
      ActiveRecord::Base.establish_connection(ARGV[0])
      ActiveRecord::Base.connection.execute("CREATE TABLE readings (id int PRIMARY KEY, account_id int)")
      class Second < ActiveRecord::Base
        self.abstract_class = true
        establish_connection(ARGV[1])
      end
      Second.connection.execute("CREATE TABLE hits (id int PRIMARY KEY)")
      class Hit < Second; end
      class ApplicationResource < Castellan::Resource
        cache :exact, by: :account_id
      end
      class HitResource < ApplicationResource
        model Hit
        per_viewer(:read, version: { readings: :account_id }) { [] }
      end
      puts HitResource.render
      Class.new(ApplicationResource) { [model(Hit), cache(:exact, by: :acount_id)] }.checked_rows rescue puts $!.message
    RUBY
    rendered, error = run_ruby("-e", script, *Array.new(2) { Castellan::TestServers.postgres_url }).lines
    assert_equal %({"data":[]}\n), rendered
    assert_includes error, "cache by: no table has a column acount_id"
  end

  def test_an_invalid_model_raises_with_the_fix
    ambiguous = Array.new(2) { Sequel.sqlite }
    error = assert_raises(Castellan::DeclarationError) {
      Class.new(Castellan::Resource) {
        model "users"
        id :id
      }.checked_rows
    }
    assert_includes error.message, "it is not clear which database has the table \"users\""
    error = assert_raises(Castellan::DeclarationError) { Class.new(Castellan::Resource) { model(7) && type("x") }.checked_rows }
    assert_includes error.message, "give an ActiveRecord model or relation"
  ensure
    ambiguous&.each { |database| Sequel::DATABASES.delete(database.tap(&:disconnect)) }
  end

  def test_errors_of_related_resources_are_found_at_the_first_use
    wrong = Class.new(Castellan::Resource) { attributes :boddy }
    wrong.model models::Comment
    error = assert_raises(Castellan::DeclarationError) { resource { has_many :comments, resource: wrong }.checked_rows }
    assert_includes plain(error), "comments has no column boddy (did you mean body?)"
  end

  def test_columns_of_links_meta_objects_and_conditions_are_checked
    { "link :self" => -> { link :self, "/articles/{ident}" }, "meta" => -> { meta(columns: :ident) { |row| { a: row.ident } } },
      "attribute :title, if:" => -> { attribute :title, if: ->(row, _) { row.ident }, if_columns: %i[ident] },
      "belongs_to :author" => -> { belongs_to :author, links: { self: "/authors/{ident}" } },
      "has_many :tags" => -> { has_many :tags, if: ->(row, _) { row.ident }, columns: %i[ident] } }.each do |what, body|
      error = assert_raises(Castellan::DeclarationError) { resource(&body).checked_rows }
      assert_includes plain(error), "#{what}: articles has no column ident"
    end
  end

  def test_a_relationship_without_a_matching_resource_names_the_fix
    authors = models::Author
    writer = Class.new(models::Article) { belongs_to :writer, anonymous_class: authors, foreign_key: :author_id }
    wrong = resource { type("articles") && belongs_to(:writer) }
    wrong.model writer
    error = assert_raises(Castellan::DeclarationError) { wrong.checked_rows }
    assert_match(/belongs_to :writer: no resource is named like it, but writer is of \S+Author: write resource: "\S+::AuthorResource"/,
                 plain(error))
  end

  def test_errors_name_the_nearest_of_many_resources
    far = Module.new
    Object.const_set(:FarAway, far)
    authors = models::Author
    5.times { |number| far.const_set("Far#{number}AuthorResource", Class.new(Castellan::Resource) { model authors }) }
    writer = Class.new(models::Article) { belongs_to :writer, anonymous_class: authors, foreign_key: :author_id }
    wrong = resource { type("articles") && belongs_to(:writer) }
    wrong.model writer
    told = plain(assert_raises(Castellan::DeclarationError) { wrong.checked_rows })[/write resource: (.*?) \(/, 1].split(" or ")
    assert_equal [3, true], [told.size, told.first.end_with?('::AuthorResource"')], told.inspect
  ensure
    Object.send(:remove_const, :FarAway)
  end

  def test_a_polymorphic_relationship_without_resources_names_the_fix
    noted = Class.new(models::Article) do
      belongs_to :subject, polymorphic: true, foreign_key: :author_id, foreign_type: :title
    end
    wrong = resource { type("articles") && belongs_to(:subject) }
    wrong.model noted
    assert_includes plain(assert_raises(Castellan::DeclarationError) { wrong.checked_rows }), "name the resources of its types, resource: ["
  end

  def test_one_resource_for_two_relationships_fits_both
    error = assert_raises(Castellan::DeclarationError) { resource { has_many :comments, :tags, resource: "CommentResource" }.checked_rows }
    assert_includes plain(error), "has_many :tags: tags is of tags, and ActiveRecordLibrarySqlite::CommentResource is of comments"
    assert resource { has_many :comments, resource: "CommentResource" }.checked_rows
  end

  def test_a_block_that_reads_an_unnamed_column_names_the_fix
    error = assert_raises(NoMethodError) { render(1) { attribute(:shout, columns: :title) { |row| row.body.upcase } } }
    assert_includes error.message, "the block reads body, which it does not name: write columns: [:title, :body] if that is a column"
  end

  def test_an_attribute_called_type_is_written_in_nested_json_only
    declared = proc { [format(:nested), attribute(:type, from: "title"), attribute(:body)] }
    assert_equal({ "id" => 1, "type" => "Title 1", "body" => "Body 1" }, JSON.parse(render(1, &declared)))
    data = JSON.parse(render(1, format: :json_api, fields: { active_record_library_sqlite_articles: %i[type body] }, &declared))["data"]
    assert_equal({ "body" => "Body 1" }, data["attributes"])
    error = assert_raises(Castellan::DeclarationError) { declare { attributes :type } }
    assert_includes error.message, "the name of what identifies a resource; declare it with `type …`"
  end

  def test_a_row_in_the_place_of_a_record_in_a_url_names_the_fix
    error = assert_raises(NoMethodError) { render(1) { attribute(:url, columns: :id) { |row| "/books/#{row.to_param}" } } }
    assert_includes error.message, "a row has no to_param for the path of a URL: write post_url(row.id) instead of post_url(row)"
  end

  def test_an_id_of_several_columns_identifies_a_record
    found = %i[json_api nested].map { |format| JSON.parse(render("3_Title 3", format: format) { id :id, :title }) }
    assert_equal ["3_Title 3", "3_Title 3"], [found[0].dig("data", "id"), found[1]["id"]]
    assert_equal '{"data":null}', render("3_Title 4") { id :id, :title }
  end

  def test_an_unknown_id_column_is_named_with_its_line
    error = assert_raises(Castellan::DeclarationError) { render(1) { id :titel } }
    assert_match(/id: articles has no column titel \(did you mean title\?\) \(#{Regexp.escape(__FILE__)}:\d+\)\z/, plain(error))
    assert_includes assert_raises(Castellan::DeclarationError) { declare { id } }.message, "name the column that identifies a row"
  end

  def test_a_relationship_to_another_class_than_a_resource_raises
    source = models::Comment
    [source, -> { source }, [source], { "Comment" => source }].each do |given|
      error = assert_raises(Castellan::DeclarationError) { render(1) { has_many :comments, resource: given } }
      assert_match(/has_many :comments: resource: .*Comment.* is no resource; name a subclass of Castellan::Resource \(/, error.message)
    end
  end

  def test_an_unknown_option_raises_with_the_line_and_the_option_to_write
    { "attribute has no option :form (did you mean from?)" => -> { attribute :title, form: "author.name" },
      "belongs_to has no option :class_name (write resource:)" => -> { belongs_to :author, class_name: "Author" },
      "has_many has no option :polymorphic (write resource:)" => -> { has_many :articles, polymorphic: true },
      "page has no option :max (write max_size:)" => -> { page size: 3, max: 9 },
      "filter has no option :default (there is: from, reveals)" => -> { filter :title, default: "a" },
      "cache has no option :expires (write expires_in:)" => -> { cache :exact, expires: 60 } }.each do |message, code|
      error = assert_raises(Castellan::DeclarationError) { declare(&code) }
      assert_includes plain(error), message
      assert_includes error.message, "declaration_test.rb:"
    end
  end

  def test_a_meta_object_that_is_no_hash_raises
    assert_includes assert_raises(Castellan::DeclarationError) { declare { meta 3 } }.message, "meta must be a Hash, got 3"
  end

  def test_a_condition_of_three_arguments_raises
    error = assert_raises(Castellan::DeclarationError) { declare { attribute(:title, if: ->(row, viewer, other) { row && viewer && other }) } }
    assert_includes error.message, "if: must be a block of the viewer, or of the row and the viewer"
  end

  def test_links_of_a_relationship_that_are_no_hash_raise_with_what_to_write
    error = assert_raises(Castellan::DeclarationError) { declare { belongs_to :author, links: "/authors/{id}" } }
    assert_match(%r{links: must be a Hash, such as links: \{ related: .* \}, got "/authors/\{id\}"}, error.message)
  end

  def test_a_misspelt_association_of_preloads_raises_when_the_resource_is_checked
    [:autor, [:autor], { autor: :articles }].each do |wrong|
      declared = resource { attribute(:byline, preloads: wrong) { |article| article.author.name } }
      error = assert_raises(Castellan::DeclarationError) { declared.document.explain }
      assert_includes plain(error), "attribute :byline, preloads: "
      assert_includes plain(error), "has no association autor (did you mean author?)"
    end
  end

  def test_a_meta_object_may_be_written_without_braces
    assert_equal({ "version" => 1 }, JSON.parse(render(1) { meta version: 1 }).dig("data", "meta"))
  end

  def test_a_subclass_in_another_namespace_finds_the_resources_of_its_superclass
    assert_equal models::AuthorResource, Class.new(models::ArticleResource).definition.relationships[:author].resource
  end

  private

  def resource(&body)
    source = models::Article
    namespace = models
    Class.new(Castellan::Resource) do
      model source
      define_singleton_method(:name) { "#{namespace.name}::Declared" }
      class_exec(&body)
    end
  end

  # Removes the namespace of the tests' models, which is part of the plural name.
  def plain(error) = error.message.gsub("active_record_library_sqlite_", "")

  def declare(&body) = resource(&body).definition

  def render(id, **options, &body)
    Library.active_record(:sqlite).fill
    resource(&body).render(id: id, **options)
  end
end
