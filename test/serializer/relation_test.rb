# frozen_string_literal: true

require "test_helper"
require "document/library"
require "castellan/serializer"
require "castellan/instrument"

# Serializers of a relation or dataset: which types come from rows or records, and the number of statements.
module SerializerOfRelationContract
  # Counts instantiated records by class.
  class Made
    attr_reader :counts

    def initialize = @counts = Hash.new(0)
    def query(*) = nil
    def loaded(model, count, _site) = @counts[model.split("::").last] += count
  end

  def setup
    library.fill
  end

  def test_plain_types_are_written_from_rows
    article = articles { attributes :title, :position }
    assert_empty made { article.new(ordered, include: %i[author tags comments]).to_json }
    assert_same_document article, include: %i[author tags comments]
    assert_same_document article, include: [:"author.mentor"], fields: { article: %i[title author], author: [:name] }
  end

  def test_members_and_included_are_in_the_order_of_the_options
    article = articles { attributes :title, :position }
    document = JSON.parse(article.new(scope.where(id: 1), include: %i[tags author],
                                                          fields: { article: %i[tags position author title], author: [] }).to_json)
    object = document["data"].first
    assert_equal %w[id type attributes relationships], object.keys
    assert_equal [%w[position title], %w[tags author]], object.values_at("attributes", "relationships").map(&:keys)
    assert_equal %w[tag tag author], document["included"].map { |one| one["type"] }
    assert_same_document article, include: %i[tags author], fields: { article: %i[tags position author title], author: [] }
  end

  def test_an_overridden_hash_method_applies_to_a_relation
    article = articles { attributes :title }
    article.define_method(:hash_for_collection) { super().merge(jsonapi: { version: "1.1" }) }
    assert_equal({ "version" => "1.1" }, JSON.parse(article.new(ordered).to_json)["jsonapi"])
    assert_same_document article
  end

  def test_an_opaque_primary_type_is_loaded_once_and_the_others_stay_rows
    article = articles { attribute(:shout) { |record, params| "#{record.title.upcase}#{params[:mark]}" } }
    assert_equal({ "Article" => 7 }, made { article.new(ordered, include: %i[author tags], params: { mark: "!" }).to_json })
    assert_same_document article, include: %i[author tags comments], params: { mark: "!" }
    assert_equal "TITLE 1!", JSON.parse(article.new(ordered, params: { mark: "!" }).to_json)["data"][6]["attributes"]["shout"]
  end

  def test_all_members_of_an_opaque_type_are_read_from_its_records
    article = articles { attribute(:title) { |record| record.title * 2 } }
    statements = library.queries { article.new(scope.where(id: [1, 2])).to_json }
    assert_equal 1, statements.grep(/body/).size + statements.grep(/articles"?\.\*|\* FROM/).size, statements.inspect
    assert_same_document article, {}, scope.where(id: [1, 2])
  end

  def test_an_opaque_included_type_is_loaded_once
    article = articles { attributes :title }
    serializer(:Author).attribute(:shout) { |record| record.name.upcase }
    assert_equal({ "Author" => 3 }, made { article.new(ordered, include: %i[author tags]).to_json })
    assert_same_document article, include: %i[author tags]
  end

  def test_the_number_of_statements_does_not_grow_with_the_records
    plain = articles { attributes :title }
    opaque = articles { attribute(:shout) { |record| record.title.upcase } }
    [plain, opaque].each do |serializer|
      few, many = [3, 7].map { |count| library.queries { serializer.new(limited(count), include: %i[author tags comments]).to_json }.size }
      assert_equal few, many
    end
  end

  def test_an_opaque_type_alone_is_one_statement
    article = articles { attribute(:shout) { |record| record.title.upcase } }
    assert_equal 1, library.queries { article.new(ordered, fields: { article: [:shout] }).to_json }.size
  end

  def test_linkage_loads_no_record
    article = articles { attribute(:shout) { |record| record.title.upcase } }
    assert_equal({ "Article" => 7 }, made { article.new(ordered).to_json })
    assert_same_document article
  end

  def test_declared_preloads_of_blocks_are_loaded
    walking = articles { attribute(:author_name) { |record| record.author.name } }
    declared = articles { attribute(:author_name, preloads: :author) { |record| record.author.name } }
    few, many = [2, 7].map { |count| library.queries { declared.new(limited(count)).to_json }.size }
    assert_equal few, many
    assert_operator library.queries { walking.new(ordered, together: false).to_json }.size, :>, many
    assert_same_document declared
  end

  def test_preloads_take_a_tree_as_the_orm_does
    trees = [{ author: :mentor }, [{ author: [:mentor] }], [:author, { author: :mentor }]]
    trees.each do |tree|
      article = articles { attribute(:mentor, preloads: tree) { |record| record.author.mentor&.name } }
      few, many = [2, 7].map { |count| library.queries { article.new(limited(count)).to_json }.size }
      assert_equal few, many, tree.inspect
      assert_same_document article
    end
  end

  def test_associations_that_the_relation_includes_are_loaded_once
    article = articles { attribute(:mentor, preloads: { author: :mentor }) { |record| record.author.mentor&.name } }
    given = library.is_a?(SequelLibrary) ? ordered.eager(:author, :comments) : ordered.includes(:author, :comments)
    [{}, { include: %i[author comments] }].each do |options|
      statements = library.queries { article.new(given, options).to_json }
      %w[articles authors comments].each do |table|
        times = statements.grep(/FROM .?#{table}/).size
        assert_operator times, :<=, table == "authors" ? 2 : 1, statements.inspect # a mentor is an author
      end
      assert_same_document article, options
      assert_equal article.new(ordered, options).to_json, article.new(given, options).to_json
    end
  end

  # Attributes, links and meta objects may read associations that are declared as relationships or paths.
  def test_associations_that_attributes_links_and_meta_read_are_preloaded
    author = ->(record, *) { record.author.name }
    [articles { attribute(:author_name, &author) }, articles { attribute(:author_name, from: "author.name") },
     articles { link(:author, &author) }, articles { meta { |record| { name: record.author.name } } },
     articles { belongs_to :author, links: { related: author } },
     articles { belongs_to :author, meta: ->(record) { { name: record.author.name } } }].each do |article|
      few, many = [2, 7].map { |count| library.queries { article.new(limited(count)).serializable_hash }.size }
      assert_equal few, many
      assert_same_document article
    end
  end

  def test_a_path_is_a_column
    article = articles { attribute :author_name, from: "author.name" }
    assert_empty made { article.new(ordered).to_json }
    assert_same_document article
    assert_same_document articles { attribute :mentor, from: { author: { mentor: :name } } }
  end

  def test_a_method_without_a_column_makes_the_type_opaque
    models::Article.define_method(:headline) { "#{position}. #{title}" }
    article = articles { attributes :headline, :title }
    assert_equal({ "Article" => 7 }, made { article.new(ordered).to_json })
    assert_includes article.new(ordered).explain, "headline: headline is neither a column nor an association of"
    assert_same_document article
  ensure
    models::Article.remove_method(:headline)
  end

  def test_explain_names_the_source_of_each_type_and_the_reason_for_records
    article = articles do
      attributes :title
      attribute(:author_name) { |record| record.author&.name }
      attribute(:words) { |record| record.comments.map(&:body).join }
    end
    lines = article.new(ordered, include: %i[tags]).explain.lines.map(&:chomp)
    assert_equal "article: loaded as records, in one statement; write `from:` for a column, `preloads:` for associations that a " \
                 "block reads", lines[0]
    assert_equal ["  author_name: its block takes the record", "  words: its block takes the record"], lines[1, 2]
    assert_equal "tag (tags): from rows (id, name)", lines[3]
    assert_includes article.new(ordered.all.to_a).explain, "the records that were given"
  end

  def test_explain_gives_the_reason_for_a_document_from_records
    article = articles { has_many(:latest, serializer: :comment) { |record| record.comments } }
    assert_includes article.new(ordered, include: [:latest]).explain,
                    "article: the whole document is written from records, because #{article.name} writes latest, and its block " \
                    "takes the record"
    assert_same_document article, include: [:latest]
  end

  def test_an_attribute_and_a_relationship_of_one_name_are_both_written
    article = articles do
      attributes :title
      has_many :comments, key: :title
    end
    object = JSON.parse(article.new(ordered).to_json)["data"].first
    assert_equal [%w[title], %w[author tags title]], object.values_at("attributes", "relationships").map { |members| members.keys.sort }
    assert_includes article.new(ordered).explain, "writes comments, and an attribute has the same name"
    assert_same_document article, include: %i[comments]
    assert_same_document article, fields: { article: %i[title tags] }
  end

  def test_explain_names_the_serializer_that_is_missing
    article = articles { has_many :tags, serializer: :missing }
    assert_match(/because .* writes tags, and .* cannot resolve a serializer class for 'missing'\.  Attempted to find/,
                 article.new(ordered).explain)
  end

  def test_an_undeclared_include_raises_before_any_query
    article = articles { attributes :title }
    assert_empty(library.queries {
      error = assert_raises(Castellan::BadRequest) { article.new(ordered, include: [:nope]) }
      assert_equal ["include", 400], [error.parameter, error.status]
    })
  end

  def test_a_deep_include_raises
    article = articles { attributes :title }
    error = assert_raises(Castellan::BadRequest) { article.new(ordered, include: [(["author"] * 11).join(".")]) }
    assert_includes error.message, "include goes deeper than 10 levels"
  end

  def test_includes_and_fields_accept_the_forms_that_clients_send
    article = articles { attributes :title, :position }
    asked = { include: "author,tags", fields: { "article" => "title,author", "author" => "name" } }
    assert_equal article.new(ordered, include: %i[author tags], fields: { article: %i[title author], author: [:name] }).to_json,
                 article.new(ordered, asked).to_json
  end

  def test_linkage_of_given_records_is_preloaded
    plain = articles { attributes :title }
    opaque = articles { attribute(:shout) { |record| record.title.upcase } }
    [plain, opaque].each do |serializer|
      few, many = [3, 7].map do |count|
        records = limited(count).all.to_a
        library.queries { serializer.new(records, include: [:tags]).to_json }.size
      end
      assert_equal few, many
    end
  end

  def test_the_relation_of_the_caller_stays_unloaded
    article = articles { attribute(:shout) { |record| record.title.upcase } }
    resource = ordered
    document = article.new(resource)
    before = document.explain
    document.to_json
    document.serializable_hash
    assert_equal before, document.explain
  end

  def test_later_declarations_apply
    article = articles { attributes :title }
    article.new(ordered).to_json
    article.attribute(:shout) { |record| record.title.upcase }
    article.belongs_to :author, lazy_load_data: true
    assert_same_document article
    assert_same_document article, include: [:author]
  end

  def test_the_number_of_plans_is_bounded
    article = articles { attributes :title }
    fields = [%w[title author], %w[author title], %w[title nope author], %w[title author tags], [], %w[nope]]
    fields.cycle.first(60).each { |names| article.new(ordered, fields: { article: names }).to_json }
    plans = Castellan::Serializer::Translation.for(article, models::Article).resource.definition.plans
    assert_includes 1..4, plans.size
  end

  private

  def models = library.models

  def scope = models::Article.where(Castellan::Rows.for(models::Article).columns.first => (1..9).to_a)

  # Defines serializers in a new module for each test.
  def articles(&body)
    @space = Module.new
    self.class.const_set(:"Space#{@number = (@number || 0) + 1}#{name}", @space)
    define(:Tag) { attributes :name }
    define(:Comment) { attributes :body }
    define(:Author) do
      attributes :name
      belongs_to :mentor, serializer: :author
    end
    define(:Article) do
      belongs_to :author
      has_many :tags
      has_many :comments
    end
    serializer(:Article).class_eval(&body)
    serializer(:Article)
  end

  def define(name, &body)
    serializer = @space.const_set(:"#{name}Serializer", Class.new)
    serializer.include(Castellan::Serializer)
    serializer.class_eval(&body)
  end

  def serializer(name) = @space.const_get(:"#{name}Serializer")

  def ordered = scope.order(:position, :id)
  def limited(count) = scope.order(:id).limit(count)

  def made(&block)
    observer = Made.new
    Castellan::Instrument.record(observer, &block)
    observer.counts.except("Hash") # Sequel's rows are hashes
  end

  # Compares the document of a relation with that of its records.
  def assert_same_document(serializer, options = {}, resource = ordered, **more)
    options = options.merge(more)
    records = serializer.new(resource.all.to_a, options).to_json
    assert_equal records, serializer.new(resource, options).to_json
    assert_equal records, Castellan::Serializer::JsonText.of(serializer.new(resource, options).serializable_hash)
  end
end

class SerializerOfActiveRecordTest < Minitest::Test
  include SerializerOfRelationContract

  def library = Library.active_record(:sqlite)

  def test_an_overridden_reader_makes_the_type_opaque
    models::Article.class_eval { def title = "<#{super}>" }
    article = articles { attributes :title }
    assert_equal({ "Article" => 7 }, made { article.new(ordered).to_json })
    assert_includes article.new(ordered).explain, "reads title by its own method ("
    assert_same_document article
  ensure
    models::Article.remove_method(:title)
  end

  def test_a_private_reader_raises_like_that_of_a_record
    models::Article.class_eval { private def title = super }
    article = articles { attributes :title }
    [ordered, ordered.to_a].each { |resource| assert_raises(NoMethodError) { article.new(resource).to_json } }
    assert_includes article.new(ordered).explain, "title: title is private"
  ensure
    models::Article.remove_method(:title)
  end

  def test_a_reader_of_an_association_makes_the_type_opaque
    models::Article.class_eval { def tags = super.where(name: "ruby") }
    models::Article.class_eval { def tag_ids = tags.map(&:id) }
    article = articles { attributes :title }
    assert_same_document article
    assert_same_document article, include: [:tags]
    assert_includes article.new(ordered).explain, "writes tags, and tags is read by a method of the model's own"
  ensure
    models::Article.remove_method(:tags)
    models::Article.remove_method(:tag_ids)
  end

  def test_a_loaded_relation_is_not_read_again
    article = articles { attributes :title }
    loaded = ordered.load
    assert_empty(library.queries { article.new(loaded, fields: { article: [:title] }).to_json })
  end

  def test_records_that_were_built_in_an_association_are_written
    author = models::Author.find(1)
    author.articles.build(title: "Built")
    article = articles { attributes :title }
    titles = JSON.parse(article.new(author.articles, fields: { article: [:title] }).to_json)["data"].map { |one|
      one["attributes"]["title"]
    }
    assert_includes titles, "Built"
    assert_empty JSON.parse(article.new(models::Author.new.articles).to_json)["data"]
  end

  def test_the_relation_of_the_caller_loads_an_opaque_type
    article = articles { attribute(:words) { |record| record.words } }
    chosen = ordered.select("articles.*, 7 AS words").limit(3)
    assert_equal [7, 7, 7], JSON.parse(article.new(chosen).to_json)["data"].map { |one| one["attributes"]["words"] }
  end

  def test_polymorphic_and_conditional_members_of_a_relation_are_preloaded
    article = articles { has_many :labels, object_method_name: :tags, polymorphic: true }
    few, many = [3, 7].map { |count| library.queries { article.new(limited(count), include: [:labels]).to_json }.size }
    assert_equal few, many
    assert_same_document article, include: [:labels]
  end

  def test_a_polymorphic_belongs_to_with_a_scope_is_preloaded
    note = notes { belongs_to :about, -> { where.not(id: 2) }, polymorphic: true }
    of_notes = ->(count) { note.where(id: ..count).order(:id) }
    [{}, { include: [:about] }].each do |options|
      few, many = [3, 6].map { |count| library.queries { serializer(:Note).new(of_notes[count], options).to_json }.size }
      assert_equal few, many, options.inspect
      assert_same_document serializer(:Note), options, of_notes[6]
    end
  end

  def test_a_polymorphic_belongs_to_with_a_scope_is_preloaded_below_an_include
    notes { belongs_to :about, -> { where.not(id: 2) }, polymorphic: true }
    models::Author.has_many :notes, class_name: "::#{models}::Note"
    serializer(:Author).has_many :notes
    [[:notes], %i[notes notes.about]].each do |include|
      few, many = [1, 3].map do |count|
        library.queries { serializer(:Author).new(models::Author.where(id: ..count).order(:id), include: include).to_json }.size
      end
      assert_equal few, many, include.inspect
      assert_same_document serializer(:Author), { include: include }, models::Author.order(:id)
    end
  end

  def test_a_polymorphic_belongs_to_whose_scope_takes_the_owner_is_queried_per_record
    note = notes { belongs_to :about, ->(one) { where.not(id: one.id - 4) }, polymorphic: true }
    assert_equal 7, library.queries { serializer(:Note).new(note.order(:id), include: [:about]).to_json }.size
    assert_same_document serializer(:Note), { include: [:about] }, note.order(:id)
  end

  def test_a_link_does_not_load_a_lazy_relationship
    article = articles do
      has_many :comments, lazy_load_data: true
      link(:self) { |record| "/articles/#{record.id}" }
    end
    assert_empty library.queries { article.new(limited(3)).serializable_hash }.grep(/comments/)
  end

  def test_a_hidden_include_is_not_loaded
    note = notes { belongs_to :about, ->(one) { where.not(id: one.id - 4) }, polymorphic: true }
    serializer(:Note).belongs_to :about, polymorphic: true, if: ->(_record, params) { params[:shown] }
    options = { include: [:about], params: { shown: false } }
    assert_equal 1, library.queries { serializer(:Note).new(note.order(:id), options).to_json }.size
    assert_same_document serializer(:Note), options, note.order(:id)
  end

  def test_the_conditions_of_a_relation_also_select_the_records_that_it_joins_and_loads
    article = articles { attributes :title, :position }
    name = models::Tag.order(:id).first.name
    joined = [scope.includes(:tags), scope.eager_load(:tags)].map { |one| one.where(tags: { name: name }).order(:id) }
    joined.each do |one|
      assert_same_document article, { include: %i[tags author] }, one
      assert_same_document article, {}, one
    end
    assert_match(/the conditions of the relation also select the associated records/, article.new(joined.first).explain)
    assert_empty made { article.new(scope.includes(:tags).order(:id), include: %i[tags]).to_json }
  end

  def test_a_page_of_a_relation_keeps_limit_and_offset
    article = articles { attribute(:shout) { |record| record.title.upcase } }
    assert_same_document article, {}, ordered.limit(2).offset(3)
    assert_same_document article, { include: [:author] }, ordered.limit(2).offset(3)
  end

  private

  # Creates six notes, about tags and authors alternately.
  def notes(&body)
    articles { attributes :title }
    library.run("DROP TABLE IF EXISTS notes")
    library.run("CREATE TABLE notes (id integer PRIMARY KEY, author_id integer, about_type varchar(80), about_id integer)")
    rows = (1..6).map { |id| "(#{id}, #{(id % 3) + 1}, '#{models}::#{%w[Author Tag][id % 2]}', #{(id + 1) / 2})" }
    library.run("INSERT INTO notes VALUES #{rows.join(", ")}")
    define(:Note) { belongs_to :about, polymorphic: true }
    models.send(:remove_const, :Note) if models.const_defined?(:Note, false)
    models.const_set(:Note, Class.new(models::Base)).tap { |note| note.class_eval(&body) }
  end
end

class SerializerOfActiveRecordOnPostgresTest < Minitest::Test
  include SerializerOfRelationContract

  def setup
    needs :postgres
    super
  end

  def library = Library.active_record(:postgres)
end

class SerializerOfSequelOnPostgresTest < Minitest::Test
  include SerializerOfRelationContract

  def setup
    needs :postgres
    super
  end

  def library = Library.sequel(:postgres)
end

class SerializerOfSequelTest < Minitest::Test
  include SerializerOfRelationContract

  def library = Library.sequel(:sqlite)

  def test_a_union_is_read_as_the_models_table
    union = models::Article.where(id: [1, 2]).union(models::Article.where(id: 5))
    [articles { attributes :title }, articles { attribute(:shout) { |record| record.title.upcase } }].each do |article|
      assert_same_document article, { include: [:author] }, union
    end
  end

  def test_an_association_uses_the_changed_foreign_key
    by_author = { class: models::Article, key: :author_id, primary_key: :author_id, order: :id }
    model = Class.new(models::Article) { one_to_many :siblings, by_author }
    article = articles { has_many :siblings, serializer: :article }
    records = model.where(id: [1, 2]).order(:id).all
    records.last.author_id = 1
    document = article.new(records, fields: { article: [:siblings] })
    bytes = document.to_json # before the records load their associations
    assert_equal([%w[1 4 7], %w[3 6]], JSON.parse(bytes)["data"].map { |one| ids_of(one, "siblings") })
    assert_equal Castellan::Serializer::JsonText.of(document.serializable_hash), bytes
  end

  private

  def ids_of(object, name) = object["relationships"][name]["data"].map { |one| one["id"] }
end
