# frozen_string_literal: true

require "test_helper"
require "document/library"

# What was parsed before is not parsed again, and nobody can change what is known.
class KnownRequestsTest < Minitest::Test
  def setup
    @resource = Class.new(Library.active_record(:sqlite).models::ArticleResource)
  end

  def definition = @resource.definition

  def test_what_was_asked_before_is_the_same_request
    [{}, { include: %i[tags author] }, { include: "author", fields: { articles: "title,author" } }, { format: :nested },
     { representation: :summary }].each do |asked|
      assert_same parse({}, **asked), parse({}, **asked), asked.inspect
    end
    assert_same parse({ "include" => "tags", "action" => "index" }), parse({ include: "tags" })
  end

  def test_a_request_with_values_of_its_own_is_not_kept
    [{ sort: "-title" }, { page: { number: 2 } }, { filter: { title: "x" } }].each do |asked|
      refute_same parse({}, **asked), parse({}, **asked), asked.inspect
    end
    assert_equal 2, parse({ page: { number: 2 } }).page.first
    assert_equal 3, parse({ page: { number: 3 } }).page.first
    assert_equal 0, known.size
  end

  def test_what_the_caller_changes_afterwards_is_another_request
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

  def test_what_is_refused_is_refused_again
    2.times { assert_raises(Castellan::BadRequest) { parse({ "include" => "nobody" }) } }
    2.times { assert_raises(ArgumentError) { parse({}, includes: :tags) } }
    assert_equal 0, known.size
  end

  def test_clients_cannot_make_it_grow
    150.times { |number| parse({ "fields" => { "articles" => "title#{",title" * number}" } }) }
    assert_includes 50..100, known.size
    long = { "include" => "tags#{",tags" * 40}", "fields" => { "articles" => "title#{",title" * 200}" } }
    refute_same parse(long), parse(long)
    assert_equal parse(long).signature, parse({ "include" => "tags", "fields" => { "articles" => "title" } }).signature
  end

  private

  def parse(query, **options) = Castellan::Plan::Request.parse(definition, query, **options)
  def known = definition.derive(:known_requests) { Castellan::Plan::KnownRequests.new }
end
