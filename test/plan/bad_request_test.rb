# frozen_string_literal: true

require "test_helper"
require "document/library"

# An undeclared name in a client's parameters is a 400 before any query. The error names the parameter, the
# invalid part and the allowed values.
class BadRequestTest < Minitest::Test
  LONG = "x" * 20_000

  # parameters => [the parameter with the error, its message]
  CASES = {
    { include: "auhtor" } => ["include", "auhtor is not a relationship of articles that can be included (did you mean author?)"],
    { include: "author.nothing" } => ["include", "author.nothing is not a relationship of authors"],
    { include: "title" } => ["include", "title is not a relationship of articles"],
    { include: "author,,tags" } => ["include", "include has an empty path"],
    { include: "author..mentor" } => ["include", "author. is not a relationship of authors"],
    { include: "author.mentor.mentor.mentor.mentor.mentor" } => ["include", "include goes deeper than 3 levels"],
    { include: Array.new(51) { "tags" } } => ["include", "include names more than 50 paths"],
    { include: LONG } => ["include", "include is longer than 2000 bytes"],
    { include: "tags\xFF" } => ["include", "include is not valid UTF-8"],
    { include: 7 } => ["include", "include must be a list of relationship paths"],
    { fields: "title" } => ["fields", "fields must name a type: write fields[articles]=…"],
    { fields: { article: "title" } } => ["fields[article]", "\"article\" is not a type of this document (did you mean articles?)"],
    { fields: { articles: "titel" } } => ["fields[articles]", "\"titel\" is not a member of articles (did you mean title?)"],
    { fields: { articles: LONG } } => ["fields[articles]", "is longer than 5000 bytes"],
    { fields: { articles: { title: 1 } } } => ["fields[articles]", "must be a list divided by commas"],
    { fields: { articles: Array.new(1_001, "title") } } => ["fields[articles]", "names more than 1000 values"],
    { fields: { articles: "title\0" } } => ["fields[articles]", "is not valid UTF-8 text"],
    { sort: "titel" } => ["sort", "articles cannot be sorted by \"titel\" (did you mean title?)"],
    { sort: "-body" } => ["sort", "articles cannot be sorted by \"body\""],
    { sort: "title,,position" } => ["sort", "articles cannot be sorted by \"\""],
    { sort: { title: 1 } } => ["sort", "sort must be a list"],
    { sort: Array.new(1_001, "title") } => ["sort", "names more than 1000 values"],
    { sort: LONG.gsub("x", "title,") } => ["sort", "names more than 1000 values"],
    { filter: "x" } => ["filter", "filter must name what to filter by: filter[name]=value"],
    { filter: { tilte: "x" } } => ["filter[tilte]", "articles cannot be filtered by \"tilte\" (did you mean title?)"],
    { filter: { title: { gt: 1 } } } => ["filter[title]", "must be a list divided by commas"],
    { filter: { title: Array.new(1_001, "x") } } => ["filter[title]", "names more than 1000 values"],
    { filter: { title: "x\xFF" } } => ["filter[title]", "is not valid UTF-8 text"],
    { page: "2" } => ["page", "page must be page[number] and page[size]"],
    { page: { size: 6 } } => ["page[size]", "page[size] must be from 1 to 5, got 6"],
    { page: { size: 0 } } => ["page[size]", "page[size] must be from 1 to 5, got 0"],
    { page: { number: "two" } } => ["page[number]", "page[number] must be a whole number, got \"two\""],
    { page: { number: ["2"] } } => ["page[number]", "page[number] must be a whole number"],
    { page: { number: { a: 1 } } } => ["page[number]", "page[number] must be a whole number"],
    { page: { number: "999999999999" } } => ["page[number]", "page[number] must be from 1 to 3333333, got 999999999999"],
    { page: { number: "9" * 999 } } => ["page[number]", "page[number] must be from 1 to"],
    { page: { number: 999_999_999 } } => ["page[number]", "page[number] must be from 1 to"],
    { page: { after: "x" } } => ["page[after]", "only page[number] and page[size] are known"]
  }.freeze

  def test_undeclared_names_raise_before_any_query
    library = Library.active_record(:sqlite).tap(&:fill)
    CASES.each do |query, (parameter, text)|
      asked = library.queries do
        error = assert_raises(Castellan::BadRequest, query.inspect) { library.models::ArticleResource.document(query: query) }
        assert_includes error.message, text
        assert_equal [400, parameter, { "parameter" => parameter }], [error.status, error.parameter, error.to_h["source"]]
        assert_operator error.message.bytesize, :<, 400
      end
      assert_empty asked
    end
  end

  def test_text_of_any_encoding_is_parsed_or_raises_in_utf8
    resource = Library.active_record(:sqlite).tap(&:fill).models::ArticleResource
    ["é".b, "é".encode("UTF-16LE"), "é".encode("ISO-8859-1"), "\xFF".b, "\xFF".dup.force_encoding("UTF-16LE")].each do |text|
      [{ include: text }, { include: { text => "é" } }, { fields: { text => "é" } }, { fields: { articles: text } }, { sort: text },
       { filter: { text => "é" } }, { page: { text => 1 } }, { page: { size: text } }].each do |query|
        error = assert_raises(Castellan::BadRequest, query.inspect) { resource.document(query: query) }
        assert_equal error.message, JSON.parse(JSON.generate(error.to_h))["detail"]
      end
    end
    found = ["Title 3".b, "Title 3".encode("UTF-16LE")].map { |text| resource.render(query: { filter: { title: text } }) }
    assert_equal [["3"]], found.map { |document| JSON.parse(document)["data"].map { |one| one["id"] } }.uniq
  end

  def test_invalid_ids_find_nothing
    %i[sqlite postgres].each do |database|
      needs database if database == :postgres
      library = Library.active_record(database).tap(&:fill)
      named = Class.new(Castellan::Resource) { attributes :name }
      named.model(library.models::Author)
      named.id(:name)
      pair = Class.new(named) { id :id, :name }
      ids = ["\xFF", "\xFF_1", "1_\0", "x\0y", "\xC3".b, "é".encode("UTF-16LE"), ""]
      [named, pair, library.models::ArticleResource].product(ids).each do |resource, id|
        assert_equal 404, resource.document(id: id).status, [resource, id].inspect
      end
    end
  end

  def test_parameters_of_an_undeclared_feature_raise
    plain = Class.new(Castellan::Resource) { attributes :title }
    plain.model(Library.active_record(:sqlite).models::Article)
    assert_includes assert_raises(Castellan::BadRequest) { plain.document(query: { page: { size: 1 } }) }.message, "not divided into pages"
    assert_raises(Castellan::BadRequest) { plain.document(query: { sort: "title" }) }
  end
end
