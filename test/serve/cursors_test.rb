# frozen_string_literal: true

require "serve/journal_requests"
require "support/conformance"

# The Cursor Pagination profile over HTTP (the text of ethanresnick/cursor-pagination).
module CursorsContract
  extend Castellan::Conformance::Covers
  include JournalRequests

  PROFILE = "https://jsonapi.org/profiles/ethanresnick/cursor-pagination"
  ORDERS = %w[id -id rating -rating title,-rating -rating,title published_at -published_at writer_name -writer_name,rating price pinned
              rating,-published_on -published_on,pinned].freeze

  def build
    served = @served = resource_of("PostResource") do
      page :cursor, size: 4, max_size: 9
      filter :rating, :title
      sort :id, :title, :rating, :price, :pinned, :published_on, :published_at, :writer_name
    end
    counted = Class.new(served) { page :cursor, size: 4, max_size: 9, count: true }
    marked = @marked = Class.new(served) { page :cursor, size: 4, max_size: 20, cursors: true }
    titled = Class.new(marked) { meta(columns: %i[title]) { |row| { title: row.title } if row.title != "First" } }
    serve do
      resource served
      resource counted, at: "counted"
      resource marked, at: "marked"
      resource titled, at: "titled"
    end
  end

  # Ties and NULLs in every column.
  def setup
    super
    rows = (10..22).map do |id|
      rating = id % 4 == 0 ? "NULL" : id % 3
      published = id % 5 == 0 ? "NULL" : "'2026-01-0#{(id % 3) + 1} 10:00:00.12345#{id % 2}'"
      date = id % 3 == 0 ? "NULL" : "'2026-02-0#{(id % 4) + 1}'"
      price = id % 6 == 0 ? "NULL" : "#{id % 3}.50"
      "(#{id}, #{(id % 3) + 1}, 'Title #{id % 2}', #{rating}, #{published}, #{date}, #{price})"
    end
    journal.run("INSERT INTO posts (id, writer_id, title, rating, published_at, published_on, price) VALUES #{rows.join(", ")}")
    journal.run("UPDATE posts SET writer_id = NULL WHERE id IN (12, 17)")
  end

  # --- pages

  covers "cursor-1", "cursor-12", "cursor-14", "cursor-18", "cursor-29"
  def test_next_links_walk_through_the_whole_list_in_its_order
    ORDERS.each do |order|
      pages = walk("/posts?sort=#{order}", "next")
      all = ids("/counted?sort=#{order}&page[size]=9") + ids(get("/counted?sort=#{order}&page[size]=9").last["links"]["next"])
      assert_equal 16, pages.flatten.uniq.size, order
      assert_equal all, pages.flatten, order
      assert_equal [4, 4, 4, 4], pages.map(&:size), order
    end
  end

  covers "cursor-16", "cursor-17"
  def test_prev_links_walk_back
    ORDERS.each do |order|
      forth = walk("/posts?sort=#{order}&page[size]=5", "next").flatten
      back = walk("/posts?sort=#{order}&page[size]=5", "next") { |path| break walk(path, "prev") }
      assert_equal forth, back.reverse.flatten, order
    end
  end

  covers "cursor-2"
  def test_a_walk_is_the_same_list_in_ruby
    rows = journal.rows("SELECT id, rating FROM posts WHERE rating IS NOT NULL")
    expected = rows.sort_by { |row| [row["rating"], row["id"]] }.map { |row| row["id"].to_s }
    assert_equal expected, walk("/posts?sort=rating&filter[rating][null]=false", "next").flatten
    assert_equal expected.reverse, walk("/posts?sort=-rating&filter[rating][null]=false", "next").flatten
  end

  covers "cursor-5"
  def test_rows_that_are_written_meanwhile_move_nothing
    _, first = get("/posts?sort=title&filter[title][like]=Title*&page[size]=3")
    read = first["data"].map { |post| post["id"] }
    journal.run("INSERT INTO posts (id, title) VALUES (90, 'Title'), (91, 'Title 0')")
    journal.run("UPDATE posts SET title = 'Title 9' WHERE id = #{read.last}")
    journal.run("DELETE FROM posts WHERE id = #{read[1]}")
    seen = read + walk(first["links"]["next"], "next").flatten
    assert_equal [read.last], seen.tally.select { |_, times| times > 1 }.keys # it moved behind the cursor
    assert_empty((10..22).map(&:to_s) - seen)
    assert_equal [true, false], [seen.include?("91"), seen.include?("90")]
  end

  covers "cursor-28", "cursor-30", "cursor-31", "cursor-10", "cursor-11"
  def test_the_first_page_has_no_prev_and_the_last_no_next
    _, document = get("/posts?sort=id")
    assert_nil document["links"]["prev"]
    assert_match(%r{\A/posts\?sort=id&page%5Bafter%5D=[\w-]+&page%5Bsize%5D=4\z}, document["links"]["next"])
    assert_equal "/posts?sort=id&page%5Bsize%5D=4", document["links"]["first"]
    _, last = get("/posts?sort=id&page[size]=9")
    last = get(last["links"]["next"]).last
    assert_nil last["links"]["next"]
    assert_equal "22", last["data"].last["id"]
  end

  covers "cursor-31"
  def test_backwards_prev_is_null_at_the_beginning
    _, document = get("/posts?sort=id&page[size]=3")
    _, second = get(document["links"]["next"])
    _, back = get(second["links"]["prev"])
    assert_equal %w[1 2 3], back["data"].map { |post| post["id"] }
    assert_nil back["links"]["prev"]
    assert_equal %w[10 11 12], ids(back["links"]["next"])
  end

  covers "cursor-15", "cursor-33"
  def test_an_empty_page_leads_back
    _, last = get("/posts?sort=-id&page[size]=9")
    _, last = get(last["links"]["next"])
    journal.run("DELETE FROM taggings")
    journal.run("DELETE FROM comments")
    _, first = get("/posts?sort=-id&page[size]=2")
    cursor = first["links"]["next"]
    journal.run("DELETE FROM posts WHERE id < 21")
    _, empty = get(cursor)
    assert_equal [[], nil], [empty["data"], empty["links"]["next"]]
    assert_equal %w[22 21], ids(empty["links"]["prev"])
    assert_equal 7, last["data"].size
  end

  covers "cursor-19", "cursor-32"
  def test_an_empty_list_is_an_empty_array
    _, document = get("/posts?filter[rating][gt]=99")
    assert_equal [[], nil, nil], [document["data"], *document["links"].values_at("prev", "next")]
  end

  def test_filters_and_fields_stay_in_the_links
    _, document = get("/posts?sort=-rating&filter[rating][gte]=1&fields[posts]=rating&include=writer&page[size]=2")
    ratings = []
    10.times do
      ratings.concat(document["data"].map { |post| post["attributes"].fetch("rating") })
      assert_equal %w[rating], document["data"].first["attributes"].keys
      document["links"]["next"] ? document = get(document["links"]["next"]).last : break
    end
    assert_equal ratings.sort.reverse, ratings
    assert_equal journal.rows("SELECT id FROM posts WHERE rating >= 1").size, ratings.size
  end

  def test_a_filter_may_choose_one_row_of_each_group
    sqlite = journal.send(:sqlite?)
    newest = {
      [ActiveRecordJournal, true] => ->(posts, _) { posts.select("posts.*, MAX(id)").group(:writer_id) },
      [ActiveRecordJournal, false] => ->(posts, _) { posts.select("DISTINCT ON (writer_id) posts.*").order("writer_id, id DESC") },
      [SequelJournal, true] => ->(posts, _) { posts.select_all(:posts).select_append(Sequel.function(:max, :id)).group(:writer_id) },
      [SequelJournal, false] => ->(posts, _) { posts.distinct(:writer_id).order(:writer_id, Sequel.desc(:id)) }
    }.fetch([journal.class, sqlite])
    served = resource_of("PostResource") { [page(:cursor, size: 1, max_size: 9), sort(:id), filter(:newest, &newest)] }
    @app = serve { |_models| resource served }
    assert_equal [%w[22], %w[21], %w[20], %w[17]], walk("/posts?sort=-id&filter[newest]=1", "next")
  end

  def test_the_scope_of_the_viewer_holds
    seen = walk("/posts?sort=rating", "next", "HTTP_AUTHORIZATION" => "1").flatten
    visible = journal.rows("SELECT id FROM posts WHERE writer_id IN (1, 2)").map { |row| row["id"].to_s }
    assert_equal visible.sort, seen.sort
  end

  # --- ranges

  covers "cursor-26", "cursor-27"
  def test_the_cursor_of_each_item_is_its_place_in_the_list
    ["rating", "-rating,title", "-writer_name", "id"].each do |order|
      _, document = get("/marked?sort=#{order}&page[size]=20&include=tags")
      all = document["data"].map { |one| one["id"] }
      document["data"].each_with_index do |one, index|
        cursor = one["meta"]["page"]["cursor"]
        assert_equal all[(index + 1)..], ids("/marked?sort=#{order}&page[size]=20&page[after]=#{cursor}"), order
        assert_equal all[0...index], ids("/marked?sort=#{order}&page[size]=20&page[before]=#{cursor}"), order
      end
      assert(document["included"].none? { |one| one.key?("meta") })
    end
    assert_nil get("/posts").last["data"].first["meta"]
    refute get("/marked/1").last["data"].key?("meta")
  end

  def test_an_items_cursor_is_beside_its_own_meta
    data = get("/titled?sort=id").last["data"]
    assert_equal [%w[page], %w[page title]], data.first(2).map { |one| one["meta"].keys.sort }
    assert_equal(get("/marked?sort=id").last["data"].map { |one| one["meta"]["page"] }, data.map { |one| one["meta"]["page"] })
    assert_equal "Second", data[1]["meta"]["title"]
    assert_equal({ "title" => "Second" }, get("/titled/2").last["data"]["meta"])
  end

  def test_a_page_with_cursors_equals_that_of_the_models
    verification = Castellan.verify { 2.times { |size| @marked.render(query: { "page" => { "size" => (size + 5).to_s } }) } }
    assert_predicate verification, :same?, verification.to_s
  end

  covers "cursor-20", "cursor-23", "cursor-24", "cursor-25"
  def test_a_range_has_what_is_between_two_cursors
    after = cursor_after("/posts?sort=id&page[size]=2")
    before = cursor_after("/posts?sort=id&page[size]=6")
    _, document = get("/posts?sort=id&page[after]=#{after}&page[before]=#{before}")
    assert_equal [%w[3 10 11], nil], [document["data"].map { |post| post["id"] }, document["meta"]]
    _, document = get("/posts?sort=id&page[after]=#{after}&page[before]=#{before}&page[size]=2")
    assert_equal [%w[3 10], { "page" => { "rangeTruncated" => true } }], [document["data"].map { |post| post["id"] }, document["meta"]]
    assert_equal %w[11 12], ids(document["links"]["next"])
  end

  covers "cursor-22"
  def test_a_range_may_have_as_many_records_as_a_page
    after = cursor_after("/posts?sort=id&page[size]=1")
    before = cursor_after("/posts?sort=id&page[size]=8")
    assert_equal 6, ids("/posts?sort=id&page[after]=#{after}&page[before]=#{before}").size
  end

  covers "cursor-34"
  def test_the_total_is_in_the_metadata_of_the_page
    _, document = get("/counted?filter[rating][gte]=1")
    assert_equal journal.rows("SELECT id FROM posts WHERE rating >= 1").size, document["meta"]["page"]["total"]
  end

  # --- related resources

  def test_related_resources_are_paged_filtered_and_sorted
    tags = resource_of("TagResource") do
      page :cursor, size: 2
      filter :name
      sort :name
    end
    posts = resource_of("PostResource") { has_many :tags, resource: tags }
    @app = serve { resource posts }
    journal.run("INSERT INTO taggings (post_id, tag_id) VALUES (1, 3)")
    assert_equal [%w[3 1], %w[2]], walk("/posts/1/tags?sort=name", "next")
    assert_equal [%w[2 1], %w[3]], walk("/posts/1/tags?sort=-name", "next")
    assert_equal [%w[3 1]], walk("/posts/1/tags?sort=name&filter[name][not]=sql", "next")
    assert_includes get("/posts/1/tags?sort=name").last["links"]["next"], "/posts/1/tags?sort=name&page%5Bafter%5D="
  end

  # --- negotiation, headers

  def test_the_profile_is_named_in_the_content_type
    assert_equal %(#{JSON_API};profile="#{PROFILE}"), get("/posts").first["content-type"]
    assert_equal JSON_API, get("/posts/1").first["content-type"]
    assert_equal 200, get("/posts", "HTTP_ACCEPT" => %(#{JSON_API};profile="#{PROFILE} https://example.org/other")).first.status
  end

  def test_a_cursor_page_has_a_validator
    etag = get("/posts").first["etag"]
    assert_equal 304, get("/posts", "HTTP_IF_NONE_MATCH" => etag).first.status
  end

  # --- mistakes

  covers "cursor-7", "cursor-8", "cursor-9", "cursor-41", "cursor-42", "cursor-46"
  def test_wrong_sizes_are_refused
    %w[0 -1 x 1.5 1e2 %FF].each { |size| assert_bad_parameter "page[size]", "/posts?page[size]=#{size}" }
    _, document = get("/posts?page[size]=10")
    error = document["errors"].first
    assert_equal ["page[size]", { "page" => { "maxSize" => 9 } }, "#{PROFILE}/max-size-exceeded"],
                 [error["source"]["parameter"], error["meta"], error["links"]["type"]]
    assert_equal 9, ids("/posts?page[size]=009").size
  end

  covers "cursor-13", "cursor-43"
  def test_cursors_of_other_lists_and_mutated_cursors_are_refused
    cursor = cursor_after("/posts?sort=id")
    ["", "abcde", "!", "a" * 5_000, cursor.swapcase, cursor[0..-2], "#{cursor}A", cursor.reverse].each do |text|
      assert_bad_parameter "page[after]", "/posts?sort=id&page[after]=#{text}"
      assert_bad_parameter "page[before]", "/posts?sort=id&page[before]=#{text}"
    end
    assert_bad_parameter "page[after]", "/posts?sort=-id&page[after]=#{cursor}"
    assert_bad_parameter "page[after]", "/posts?page[after][]=#{cursor}"
    assert_bad_parameter "page[number]", "/posts?page[number]=2"
  end

  # A client that computes the checksum reaches nothing but other places of the list.
  def test_forged_cursors_are_refused_or_places
    list = "/posts?sort=published_at"
    order = Castellan::Plan::Request.parse(@served.definition, { "sort" => "published_at" }).cursor.order
    [[], ["2026-01-01 10:00:00"], %w[x 1], ["2026-13-01 10:00:00", "1"], ["2026-01-01 10:00:00", "x'; DROP TABLE posts; --"],
     [{}, 1], [nil, nil], ["2026-01-01 10:00:00", "99999999999999999999"], [[1], "2"], %w[infinity 2], [true, "2"],
     ["2026-01-01\0", "1"], [5, 1], [1.5, "1"], ["2026-01-01 10:00:00", 2**70], 7, "x", {}].each do |values|
      response, = get("#{list}&page[after]=#{Castellan::Plan::Cursor.new(values).text(order)}")
      assert_includes [200, 400], response.status, values.inspect
    end
    assert_equal 16, journal.rows("SELECT id FROM posts").size
  end

  # PostgreSQL refuses them, which would be a 500.
  def test_forged_values_that_a_column_cannot_hold_are_no_cursor
    postgres = self.class.name.include?("Postgres")
    journal.run("CREATE TABLE numbers (id integer PRIMARY KEY, small smallint, single real, wide float, day date, at timestamp)")
    model = things(:numbers)
    served = Class.new(Castellan::Resource) do
      model model
      type "numbers"
      page :cursor, size: 4
      sort :small, :single, :wide, :day, :at
    end
    @app = serve { resource served }
    forged = { small: %w[40000 -32769], single: %w[1e300 1e-50], wide: %w[1e-400], day: %w[NaN], at: %w[NaN 2026-01-01T00:00:00+16:00] }
    forged.each do |name, texts|
      order = Castellan::Plan::Request.parse(served.definition, { "sort" => name.to_s }).cursor.order
      texts.each do |text|
        response, document = get("/numbers?sort=#{name}&page[after]=#{Castellan::Plan::Cursor.new([text, "1"]).text(order)}")
        assert_equal "page[after]", document["errors"].first["source"]["parameter"] if postgres
        assert_includes postgres ? [400] : [200, 400], response.status, "#{name} #{text}"
      end
    end
  ensure
    journal.run("DROP TABLE IF EXISTS numbers")
  end

  covers "cursor-3", "cursor-4", "cursor-39", "cursor-40"
  def test_an_order_without_comparable_values_is_the_profiles_error
    served = things_without_comparable_values { sort :extra, :id }
    @app = serve { resource served }
    assert_equal 200, get("/things?sort=id").first.status
    _, document = get("/things?sort=extra")
    assert_equal ["sort", "#{PROFILE}/unsupported-sort"], [document["errors"].first["source"]["parameter"],
                                                           document["errors"].first["links"]["type"]]
  end

  def test_a_default_order_without_comparable_values_is_a_declaration_error
    served = things_without_comparable_values { sort :extra, default: "-extra" }
    error = assert_raises(Castellan::DeclarationError) { served.checked_rows }
    assert_match(/page :cursor: pages cannot be cut by the values of things.extra, whose type .*cursors_test.rb:\d+/, error.message)
  end

  private

  def things_without_comparable_values(&declarations)
    type = self.class.name.include?("Postgres") ? "jsonb" : "blob"
    journal.run("CREATE TABLE IF NOT EXISTS things (id integer PRIMARY KEY, extra #{type})")
    model = things
    Class.new(Castellan::Resource) do
      model model
      type "things"
      page :cursor, size: 4
      class_eval(&declarations)
    end
  end

  def things(table = :things)
    models = journal.models
    return Class.new(Sequel::Model(models::DB[table])) if models.const_defined?(:DB)

    Class.new(models::Base) { self.table_name = table.to_s }
  end

  def cursor_after(path)
    get(path).last["links"]["next"][/after%5D=([\w-]+)/, 1]
  end

  # Yields the path of the last page.
  def walk(path, direction, **headers)
    pages = []
    30.times do
      _, document = get(path, **headers)
      pages << document.fetch("data") { raise "#{path}: #{document}" }.map { |post| post["id"] }
      following = document["links"].fetch(direction)
      return following || !block_given? ? pages : yield(path) unless following

      path = following
    end
    raise "the links never end: #{path}"
  end
end

JournalRequests.on_every_database(CursorsContract)
