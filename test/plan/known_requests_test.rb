# frozen_string_literal: true

require "test_helper"
require "document/library"

# Parsed requests are cached and immutable.
class KnownRequestsTest < Minitest::Test
  def setup
    @resource = Class.new(Library.active_record(:sqlite).models::ArticleResource)
  end

  def definition = @resource.definition

  def test_equal_parameters_return_the_same_request
    [{}, { include: %i[tags author] }, { include: "author", fields: { articles: "title,author" } }, { format: :nested },
     { representation: :summary }].each do |asked|
      assert_same parse({}, **asked), parse({}, **asked), asked.inspect
    end
    assert_same parse({ "include" => "tags", "action" => "index" }), parse({ include: "tags" })
  end

  def test_a_request_with_values_is_not_cached
    [{ sort: "-title" }, { page: { number: 2 } }, { filter: { title: "x" } }].each do |asked|
      refute_same parse({}, **asked), parse({}, **asked), asked.inspect
    end
    assert_equal 2, parse({ page: { number: 2 } }).page.first
    assert_equal 3, parse({ page: { number: 3 } }).page.first
    assert_equal 0, known.size
  end

  def test_parameters_changed_by_the_caller_are_another_request
    include = [+"tags"]
    fields = { articles: [:title] }
    first = parse({}, include: include, fields: fields)
    include[0] << "" << "x"
    include[0].chop!
    include << :author
    fields[:articles] << :position
    second = parse({}, include: include, fields: fields)
    assert_equal [%i[tags], %i[author tags]], [first, second].map { |request| request.include.keys.sort }
    assert_equal [%i[title], %i[title position]], [first, second].map { |request| request.fields.of(definition) }
    assert_same first, parse({}, include: ["tags"], fields: { articles: [:title] })
  end

  def test_fixed_fields_limit_what_a_client_includes_and_fields_of_the_client_do_not
    sent = { "articles" => "title" }
    2.times do
      assert_equal %i[author], parse({ "include" => "author", "fields" => sent }).include.keys
      assert_equal %i[author], parse({}, include: %i[author], fields: sent).include.keys
      error = assert_raises(Castellan::BadRequest) { parse({ "include" => "author" }, fields: sent) }
      assert_includes error.message, "author is not a relationship of articles that can be included"
    end
    assert_equal %i[author], parse({ "include" => "author" }, fields: { articles: %i[title author] }).include.keys
  end

  def test_invalid_parameters_raise_each_time
    2.times { assert_raises(Castellan::BadRequest) { parse({ "include" => "nobody" }) } }
    2.times { assert_raises(ArgumentError) { parse({}, includes: :tags) } }
    assert_equal 0, known.size
  end

  def test_the_cache_is_bounded
    150.times { |number| parse({ "fields" => { "articles" => "title#{",title" * number}" } }) }
    assert_includes 50..100, known.size
    long = { "include" => "tags#{",tags" * 40}", "fields" => { "articles" => "title#{",title" * 200}" } }
    refute_same parse(long), parse(long)
    assert_equal parse(long).signature, parse({ "include" => "tags", "fields" => { "articles" => "title" } }).signature
  end

  private

  def parse(query, **options) = Castellan::Plan::Request.parse(definition, query, **options)
  def known = definition.derive(:known_requests) { Castellan::BoundedCache.new }
end
