# frozen_string_literal: true

require "test_helper"
require "json"
require "socket"
require "document/library"

# A streamed document has the bytes of one that is written at once, on both ORMs.
module StreamContract
  def setup
    library.fill
  end

  def test_the_pieces_join_to_the_document
    includes = [nil, "author", "tags,comments", "author.articles,comments", "author.mentor.mentor"]
    includes.product([1, 2, 3, 7, 1_000]).each do |include, size|
      document = -> { long.document(include: include) }
      assert_equal document.call.to_json, document.call.stream(size: size).each.to_a.join, "include: #{include}, size: #{size}"
    end
  end

  def test_the_pieces_of_an_ordered_or_limited_scope_join_to_the_document
    scopes.each do |name, scope|
      [1, 3, 1_000].each do |size|
        document = -> { long.document(scope, include: "author,tags") }
        assert_equal document.call.to_json, document.call.stream(size: size).each.to_a.join, "#{name}, size: #{size}"
      end
    end
  end

  def test_sorted_filtered_nested_and_empty_documents
    [{ sort: "-title" }, { filter: { "title" => "Title 3,Title 5" } }, { filter: { "title" => "none" }, include: "author" },
     { format: :nested, include: "author,comments" }, { format: :nested, filter: { "title" => "none" } },
     { meta: { a: 1 }, links: { self: "/" } }].each do |asked|
      assert_equal long.render(**asked), long.document(**asked).stream(size: 2).each.to_a.join, asked.inspect
    end
  end

  def test_viewer_values_are_filled_in_one_batch_per_piece
    calls.clear
    document = -> { library.models::WatchedArticleResource.document(include: "author", viewer: 7) }
    expected = document.call.to_json
    assert_equal [[:articles, 7], [:authors, 3]], calls
    calls.clear
    assert_equal expected, document.call.stream(size: 4).each.to_a.join
    assert_equal [[:articles, 4], [:articles, 3], [:authors, 3]], calls
  end

  def test_concurrent_writes_never_repeat_a_record
    pieces = []
    long.document.stream(size: 3).each do |bytes|
      library.run("INSERT INTO articles (id, author_id, title, position) VALUES (0, 1, 'New', 0)") if pieces.empty?
      library.run("DELETE FROM articles WHERE id IN (1, 5)") if pieces.empty?
      pieces << bytes
    end
    assert_equal %w[1 2 3 4 6 7], JSON.parse(pieces.join)["data"].map { |record| record["id"] }
  end

  def test_a_related_record_deleted_meanwhile_is_left_out
    pieces = []
    long.document(include: "author").stream(size: 3).each do |bytes|
      library.run("DELETE FROM authors WHERE id = 2") if pieces.empty?
      pieces << bytes
    end
    assert_equal %w[1 3], JSON.parse(pieces.join)["included"].map { |record| record["id"] }.sort
  end

  def test_too_many_related_records_in_one_piece_raise_before_the_first_byte
    pieces = []
    error = assert_raises(Castellan::Document::TooManyIncluded) do
      long.document(include: "author,tags").stream(most_included: 4).each { |bytes| pieces << bytes }
    end
    assert_empty pieces
    assert_includes error.message, "includes more than 4 related records (5 so far)"
    assert_includes error.message, "most_included: 40"
    assert_equal long.render(include: "author,tags"), long.document(include: "author,tags").stream(most_included: 5).each.to_a.join
  end

  def test_a_size_that_reads_no_records_is_refused
    [[{ size: 0 }, "size: must be a whole number above 0, got 0"], [{ size: "2" }, "got \"2\""],
     [{ most_included: -1 }, "most_included: must be a whole number above 0"]].each do |options, message|
      error = assert_raises(Castellan::ConfigurationError) { long.document.stream(**options) }
      assert_includes error.message, message
    end
  end

  def test_primary_records_do_not_count_as_included
    asked = { include: "author.articles" }
    assert_equal long.render(**asked), long.document(**asked).stream(most_included: 7, size: 3).each.to_a.join
  end

  def test_each_streams_a_document_unless_it_is_already_written
    document = long.document
    assert_equal long.render, document.each.to_a.join
    assert_equal [document.to_json], document.enum_for(:each).to_a
  end

  def test_a_page_and_one_record_come_in_one_piece
    paged = library.models::ArticleResource
    [paged.document.stream(size: 1), long.document(id: 3).stream, long.document(id: 99).stream].each do |stream|
      refute_predicate stream, :divided?
      assert_equal 1, stream.each.to_a.size
    end
    assert_equal [200, 404], [long.document(id: 3).stream.status, long.document(id: 99).stream.status]
  end

  def test_given_records_come_in_one_piece
    records = library.models::Article.order(:id).to_a
    stream = long.document(records, include: "author").stream(size: 1)
    assert_equal [long.render(records, include: "author")], stream.each.to_a
    assert_equal long.render(records), long.document(records).enum_for(:each).to_a.join
  end

  def test_its_headers_send_no_query
    headers = nil
    assert_empty(library.queries { headers = long.document.stream.headers })
    assert_equal({ "content-type" => "application/vnd.api+json", "cache-control" => "private, no-cache", "vary" => "accept" }, headers)
  end

  def test_close_ends_the_stream
    stream = long.document(include: "author").stream(size: 1)
    pieces = []
    stream.each do |bytes|
      pieces << bytes
      assert_empty(library.queries { stream.close }) if pieces.size == 2
    end
    assert_equal [2, true], [pieces.size, stream.closed?]
  end

  private

  def long = library.models::LongArticleResource
  def calls = library.models::CALLS
end

# For databases whose writers do not wait for readers.
module StreamSnapshotContract
  def test_a_snapshot_does_not_see_concurrent_writes
    expected = long.render(include: "author")
    pieces = []
    long.document(include: "author").stream(size: 3, snapshot: true).each do |bytes|
      apart { library.run("DELETE FROM authors") } if pieces.empty?
      apart { library.run("DELETE FROM articles") } if pieces.empty?
      pieces << bytes
    end
    assert_equal expected, pieces.join
  end

  def test_the_transaction_of_the_caller_is_the_snapshot
    expected = long.render
    library.transaction { assert_equal expected, long.document.stream(size: 3, snapshot: true).each.to_a.join }
  end

  private

  def apart(&) = Thread.new(&).join
end

# For databases that store any bytes as text.
module StreamTextContract
  def test_an_unwritable_value_ends_the_body_there
    library.run("UPDATE articles SET title = CAST(X'ff' AS TEXT) WHERE id = 5")
    pieces = []
    error = assert_raises(Castellan::EncodingError) { long.document.stream(size: 2).each { |bytes| pieces << bytes } }
    assert_includes error.message, 'articles "5", member "title"'
    assert_equal 2, pieces.size
  end
end

class StreamOnActiveRecordTest < Minitest::Test
  include StreamContract
  include StreamTextContract

  def library = Library.active_record(:sqlite)

  def test_the_connection_is_given_back_between_the_pieces
    pool = library.models::Base.connection_pool
    long.document(include: "author").stream(size: 2).each { |_bytes| nil } # warms up: before 7.2 that leaves a connection leased
    pool.release_connection
    held = long.document(include: "author").stream(size: 2).each.map { |_bytes| pool.active_connection? }
    assert_equal [nil], held.map { |connection| connection || nil }.uniq
    library.models::Base.connection
    held = long.document(include: "author").stream(size: 2).each.map { |_bytes| pool.active_connection? }
    assert held.all?, "a connection that the caller holds stays the caller's"
  ensure
    pool.release_connection
  end

  private

  def scopes
    articles = library.models::Article
    { "by key, descending" => articles.order(id: :desc), "another order" => articles.order(:position),
      "raw SQL" => articles.order(Arel.sql("position % 3, id")), "limit" => articles.order(:id).limit(5).offset(1),
      "a join to many" => articles.joins(:tags).distinct.order(:id), "grouped" => articles.group(:id).order(:id),
      "default" => articles.where(author_id: [1, 2]) }
  end
end

class StreamOnSequelTest < Minitest::Test
  include StreamContract
  include StreamTextContract

  def library = Library.sequel(:sqlite)

  private

  def scopes
    articles = library.models::Article
    { "by key, descending" => articles.reverse(:id), "another order" => articles.order(:position),
      "raw SQL" => articles.order(Sequel.lit("position % 3, id")), "limit" => articles.order(:id).limit(5, 1),
      "qualified" => articles.order(Sequel[:articles][:id]), "default" => articles.where(author_id: [1, 2]) }
  end
end

class StreamOnPostgresTest < StreamOnActiveRecordTest
  include StreamSnapshotContract

  undef_method :test_an_unwritable_value_ends_the_body_there # PostgreSQL holds no such text

  def setup
    needs :postgres
    super
  end

  def library = Library.active_record(:postgres)
end

class StreamOnSequelPostgresTest < StreamOnSequelTest
  include StreamSnapshotContract

  undef_method :test_an_unwritable_value_ends_the_body_there

  def setup
    needs :postgres
    super
  end

  def library = Library.sequel(:postgres)
end
