# frozen_string_literal: true

require "test_helper"
require "document/library"

# Every spelling of a request compiles to one plan, and the number of plans is bounded.
class RequestTest < Minitest::Test
  def models = Library.active_record(:sqlite).models
  def definition = models::ArticleResource.definition

  def test_two_spellings_of_one_request_are_one_plan
    plans = [{ include: "tags,author" }, { include: "author,tags" }, { include: %i[author tags] }, { include: [:tags, "author"] },
             { include: "author,tags,author" },
             { include: { author: nil, tags: nil } }, { include: "author,tags", fields: { comments: "body" } }].map { |asked|
      plan(**asked)
    }
    assert_equal 1, plans.first(6).map(&:object_id).uniq.size
    assert_equal 1, [{ "articles" => "title,author" }, { articles: %i[author title] }, { articles: "author,title,title" }].map { |fields|
      plan(fields: fields).object_id
    }.uniq.size
  end

  def test_values_are_not_part_of_the_plan
    assert_same plan, plan(sort: "-title", page: { number: 2 }, filter: { title: "x" })
    refute_same plan, plan(format: :nested)
  end

  def test_the_query_may_have_strings_or_symbols_for_names
    assert_equal parse({ "include" => "tags", "page" => { "size" => "2" } }).signature,
                 parse({ include: "tags", page: { size: 2 } }).signature
    assert_equal [1, 2], parse({ page: { size: 2 } }).page
  end

  def test_page_false_is_refused_because_a_document_would_be_a_page_all_the_same
    error = assert_raises(Castellan::ConfigurationError) { parse({}, page: false) }
    assert_match(/page: false: \S*ArticleResource declares pages.*write a subclass with `page false`/, error.message)
    assert_nil Castellan::Plan::Request.parse(models::TagResource.definition, {}, page: false).page
  end

  def test_options_of_the_developer_override_the_query
    request = parse({ "include" => "tags", "sort" => "title" }, include: :author, sort: "-position")
    assert_equal [%i[author], [%i[position desc]]], [request.include.keys, request.sort]
  end

  def test_action_controller_parameters_are_accepted
    parameters = Class.new { def to_unsafe_h = { "include" => "tags", "controller" => "articles" } }.new
    assert_equal %i[tags], parse(parameters).include.keys
    assert_equal parse({}).signature, parse(nil).signature
    error = assert_raises(Castellan::BadRequest) { parse("include=tags") }
    assert_includes error.message, "got String; parse a query string with Rack::Utils.parse_nested_query"
  end

  def test_a_client_cannot_include_a_relationship_with_include_false
    library = Library.active_record(:sqlite)
    resource = Class.new(library.models::ArticleResource) do
      belongs_to :author, resource: "AuthorResource", include: false
      type "articles"
    end
    [{ "include" => "author" }, { "include" => "author.articles" }, { include: %w[author] }, { include: { author: nil } }].each do |query|
      error = assert_raises(Castellan::BadRequest) { Castellan::Plan::Request.parse(resource.definition, query) }
      assert_equal ["include", 400], [error.parameter, error.status]
      assert_includes error.message, "author is not a relationship of articles that can be included"
    end
    assert_raises(Castellan::BadRequest) { Castellan::Plan::Request.parse(resource.definition, {}, include: "author") }
    assert_equal %i[author], Castellan::Plan::Request.parse(resource.definition, {}, include: %i[author]).include.keys
    assert_equal %i[author], Castellan::Plan::Request.parse(resource.definition, {}, include: %w[author]).include.keys
    assert_raises(Castellan::BadRequest) { Castellan::Plan::Request.parse(resource.definition, { "include" => %w[author] }) }
  end

  def test_clients_include_three_levels_unless_the_resource_declares_another_depth
    deep = "author.mentor.mentor.mentor"
    assert_raises(Castellan::BadRequest) { parse({ "include" => deep }) }
    assert_equal %i[author], parse({}, include: { author: { mentor: { mentor: { mentor: :mentor } } } }).include.keys
    assert_raises(Castellan::BadRequest) { parse({}, include: { author: { mentor: { mentor: { mentor: { mentor: :mentor } } } } }) }
    { 1 => "author.mentor", 4 => "#{deep}.mentor" }.each do |depth, refused|
      resource = Class.new(models::ArticleResource) { include_depth depth }
      error = assert_raises(Castellan::BadRequest) { Castellan::Plan::Request.parse(resource.definition, { "include" => refused }) }
      assert_includes error.message, "deeper than #{depth} levels: #{refused}"
      assert Castellan::Plan::Request.parse(resource.definition, { "include" => refused.rpartition(".").first })
    end
    [0, 11, nil, "3", 2.5].each do |wrong|
      assert_raises(Castellan::DeclarationError) { Class.new(models::ArticleResource) { include_depth wrong } }
    end
  end

  # As in a controller: `fields: params[:fields]`.
  def test_parts_of_action_controller_parameters_are_accepted
    parts = Class.new { define_method(:initialize) { |hash| @hash = hash } && define_method(:to_unsafe_h) { @hash } }
    request = parse({}, fields: parts.new("articles" => "title"), page: parts.new("size" => "2"), filter: parts.new("title" => "x"))
    assert_equal [%i[title], [1, 2], { "title" => %w[x] }], [request.fields.of(definition), request.page, request.filters]
    assert_same parse({}, fields: parts.new("articles" => "title")), parse({ "fields" => { "articles" => "title" } })
  end

  def test_chosen_names_the_parameters_of_the_query
    assert_empty parse({}).chosen
    refute_empty parse({}).sort
    assert_equal %i[sort page], parse({ "page" => { "size" => "2" } }, sort: "title").chosen
  end

  def test_the_number_of_plans_is_bounded
    resource = Class.new(models::ArticleResource) { (1..9).each { |number| attribute(:"a#{number}", columns: :title) { |row| row.title } } }
    (1...512).each { |bits| compile(resource.definition, fields: { articles: (1..9).select { |n| bits[n - 1] == 1 }.map { |n| "a#{n}" } }) }
    assert_includes 50..100, resource.definition.plans.size
  end

  def test_the_most_recently_used_plans_stay_cached
    cache = Castellan::BoundedCache.new(limit: 2)
    %w[a b].each { |key| cache.fetch(key) { key } }
    assert_equal "a", cache.fetch("a") { flunk }
    cache.fetch("c") { +"c" }
    assert_equal "a", cache.fetch("a") { flunk }
    assert_equal "new", cache.fetch("b") { +"new" }
    assert_equal 2, cache.size
  end

  def test_a_plan_reads_only_the_columns_that_are_written
    root = plan(fields: { articles: "headline,author_name" }).root
    assert_equal [[[], :id], [%i[author], :name], [[], :title], [[], :position]], root.columns.map { |column| [column.path, column.name] }
    assert_empty root.edges
    assert_equal [[1], [2, 3]], root.members.map(&:positions)
  end

  def test_an_included_relationship_outside_of_the_fields_is_read_but_not_written
    edge = plan(include: "author", fields: { articles: "title" }).root.edges.first
    assert_equal [:author, false, "author"], [edge.relationship.name, edge.written, edge.node.path]
  end

  def test_a_representation_limits_the_fields
    request = parse({}, representation: :summary)
    assert_equal %i[title author], request.fields.of(definition)
    assert_equal %i[title], parse({ "fields" => { "articles" => "title" } }, representation: :summary).fields.of(definition)
    error = assert_raises(Castellan::BadRequest) { parse({ "fields" => { "articles" => "position" } }, representation: :summary) }
    assert_includes error.message, "there is: author, title"
  end

  def test_a_representation_limits_the_includes
    request = parse({ "include" => "author.articles.author" }, representation: :summary)
    assert_equal({ author: { articles: { author: {} } } }, request.include)
    ["tags", "author.articles.tags"].each do |path|
      error = assert_raises(Castellan::BadRequest) { parse({ "include" => path }, representation: :summary) }
      assert_includes error.message,
                      "#{path} is not a relationship of articles that can be included in this representation (there is: author)"
    end
  end

  def test_cycles_of_resources_end_at_the_requested_depth
    nodes = compile(models::AuthorResource.definition, include: "articles.author.articles").nodes
    assert_equal ["", "articles", "articles.author", "articles.author.articles"], nodes.map(&:path)
    assert_raises(Castellan::BadRequest) { compile(models::AuthorResource.definition, include: "mentor.#{"mentor." * 5}mentor") }
  end

  def test_two_resources_of_one_type_write_their_own_fields
    short = Class.new(models::AuthorResource) { attribute(:initial, columns: :name) { |row| row.name[0] } }
    resource = Class.new(models::ArticleResource)
    resource.belongs_to :author, resource: short
    request = Castellan::Plan::Request.new(resource.definition, include: "author,author.mentor", fields: { authors: "initial" })
    assert_equal [%i[initial], []], [request.fields.of(short.definition), request.fields.of(models::AuthorResource.definition)]
  end

  def test_derived_values_are_computed_once
    calls = 0
    2.times { plan(include: "tags").derive(:test) { calls += 1 } }
    assert_equal 1, calls
  end

  def test_threads_share_one_plan
    resource = Class.new(models::ArticleResource)
    plans = Array.new(8) { Thread.new { Array.new(20) { compile(resource.definition, include: "tags") }.last } }.map(&:value)
    assert_equal 1, plans.map(&:object_id).uniq.size
  end

  private

  def parse(query, **options) = Castellan::Plan::Request.parse(definition, query, **options)
  def plan(**asked) = compile(definition, **asked)
  def compile(definition, **asked) = Castellan::Plan.compile(definition, Castellan::Plan::Request.new(definition, **asked))
end
