# frozen_string_literal: true

require "test_helper"
require "serve/journal_requests"
require "support/purged_proxy"

# A write purges every document whose bytes changed, and few others, on both ORMs and databases.
module PurgeContract
  include JournalRequests

  PATHS = %w[
    /posts /posts/1 /posts/2 /posts?include=comments,writer /posts/1?include=tags /posts?page[size]=1&page[number]=2
    /posts?sort=-title /comments/1/post /posts?filter[rating][gte]=4 /writers /writers/2 /comments?filter[body]=Yes
    /posts/1/comments /posts?fields[posts]=title /tags/3
  ].freeze
  WRITES = [
    "UPDATE posts SET title = 'Changed' WHERE id = 1", "UPDATE posts SET rating = 1 WHERE id = 2",
    "UPDATE posts SET title = 'Aaa' WHERE id = 3", "INSERT INTO posts (id, title, lock_version) VALUES (50, 'New', 0)",
    "DELETE FROM comments WHERE id = 2", "UPDATE comments SET post_id = 2 WHERE id = 1", "UPDATE comments SET body = 'Yes' WHERE id = 3",
    "UPDATE writers SET name = 'Ann' WHERE id = 2", "INSERT INTO taggings (post_id, tag_id) VALUES (2, 3)",
    "UPDATE tags SET name = 'web' WHERE id = 3", "DELETE FROM taggings WHERE tag_id = 2", "UPDATE writers SET team = 2 WHERE id = 1",
    "DELETE FROM taggings", "UPDATE tags SET id = 60 WHERE id = 3", "UPDATE posts SET writer_id = 2 WHERE id = 1",
    "DELETE FROM posts WHERE id = 1"
  ].freeze

  def setup
    journal.fill
    @proxy = PurgedProxy.new
    @purge = Castellan::Purge.new(journal.source, [@proxy], again_after: nil, log: ->(line) { (@log ||= []) << line })
    @app = build
    @purge.install(*@resources)
  end

  def teardown
    @purge.stop
    @purge.uninstall(@resources) # or an Array of them
  end

  def build
    models = journal.models
    names = %w[Post Writer Comment Tag].to_h do |name|
      [name, Class.new(models.const_get("#{name}Resource")) { cache_control s_maxage: 600 }]
    end
    @resources = names.values
    names["Post"].filter(:rating)
    names["Comment"].filter(:body)
    purge = @purge
    Rack::Lint.new(Castellan.app do
      pages
      names.each_value { |resource| resource resource }
      purge purge
    end)
  end

  def test_every_document_whose_bytes_changed_is_purged
    WRITES.each do |sql|
      before = answers
      journal.run(sql)
      tags = noted
      after = answers
      PATHS.each do |path|
        purged = before[path].first.intersect?(tags)
        purged ||= path == "/posts/1/comments" && before[path].first.empty? # which is "no-cache", because posts have a scope
        assert purged, "#{sql}\nchanged #{path}, which had #{before[path].first}; purged: #{tags}" if before[path].last != after[path].last
      end
    end
  end

  def test_documents_without_the_record_are_kept
    shown = PATHS.grep(%r{\A/posts}) - %w[/posts/2 /posts?page[size]=1&page[number]=2 /posts/1/comments]
    assert_equal (shown + %w[/comments/1/post]).sort, purged_by("UPDATE posts SET price = 3 WHERE id = 1").sort
    assert_equal %w[/posts?include=comments,writer /comments/1/post /comments?filter[body]=Yes],
                 purged_by("UPDATE comments SET body = 'Oh' WHERE id = 1")
    assert_equal %w[/tags/3], purged_by("UPDATE tags SET name = 'web' WHERE id = 3")
    assert_empty purged_by("UPDATE posts SET body = body")
    assert_empty PATHS.grep(%r{/(posts|tags)/\d\z}) & purged_by("INSERT INTO posts (id, title, lock_version) VALUES (50, 'New', 0)")
  end

  def test_a_rolled_back_write_purges_nothing
    journal.transaction do
      journal.run("UPDATE posts SET title = 'Changed' WHERE id = 1")
      raise "back"
    end
  rescue RuntimeError
    assert_empty noted
  end

  def test_nothing_is_lost_while_the_proxy_is_away
    @proxy.away = true
    journal.run("UPDATE tags SET name = 'web' WHERE id = 3")
    assert_raises(Castellan::Purge::Error) { @purge.call }
    @proxy.away = false
    @purge.call
    assert_includes @proxy.purged, digest("tags/3")
    assert_equal 0, @purge.call
  end

  def test_the_thread_sends_committed_changes
    @purge.start
    journal.run("UPDATE tags SET name = 'web' WHERE id = 3")
    eventually { @proxy.purged.include?(digest("tags/3")) }
    @proxy.away = true
    journal.run("UPDATE tags SET name = 'net' WHERE id = 2")
    eventually { @log&.any? }
    @proxy.away = false
    eventually { @proxy.purged.include?(digest("tags/2")) }
  end

  def test_a_document_of_a_table_without_triggers_is_not_stored_by_proxies
    assert_equal "public, s-maxage=600", get("/tags/3").first["cache-control"]
    assert get("/comments/1/post").first["surrogate-key"]
    assert_nil get("/posts/1/comments").first["surrogate-key"], "the scope of posts may read other tables"
    @purge.uninstall(*@resources)
    response, = get("/tags/3")
    assert_equal ["public, no-cache", nil], [response["cache-control"], response["surrogate-key"]]
  end

  def test_a_page_for_people_is_not_stored_by_proxies_because_no_purge_reaches_it
    page = request("GET", "/tags/3", "HTTP_ACCEPT" => "text/html")
    assert_equal ["text/html; charset=utf-8", "public, no-cache", nil], page.headers.values_at("content-type", "cache-control", "cache-tag")
  end

  def test_triggers_that_another_process_drops_are_missed_within_a_second
    assert_equal "public, s-maxage=600", get("/tags/3").first["cache-control"]
    Castellan::Purge.new(journal.source, [@proxy]).uninstall(*@resources)
    now = Castellan::Clock.monotonic_ns + 1_000_000_001
    Castellan::Clock.stub(:monotonic_ns, -> { now }) do
      2.times { assert_equal "public, no-cache", get("/tags/3").first["cache-control"] }
    end
    assert_equal 1, @log.size
    assert_includes @log.first, "documents are \"no-cache\", because these tables have no triggers for purges: tags; call PURGE.install"
  end

  def test_clients_do_not_learn_the_names_of_tables_and_columns
    response, = get("/posts?filter[rating][gte]=4")
    assert_match(/\A\h{10}( \h{10})+\z/, response["surrogate-key"])
    assert_equal response["surrogate-key"].tr(" ", ","), response["cache-tag"]
  end

  private

  def digest(tag) = Castellan::Purge::Tags.digests([tag]).first

  def answers
    PATHS.to_h do |path|
      response = request("GET", path)
      assert_equal 200, response.status, "#{path} #{response.body}" unless response.status == 404
      [path, [response["surrogate-key"].to_s.split, response.body]]
    end
  end

  def noted
    @proxy.purged.clear
    @purge.call
    @proxy.purged.dup
  end

  def purged_by(sql)
    before = answers
    journal.run(sql)
    tags = noted
    PATHS.select { |path| before[path].first.intersect?(tags) }
  end
end

JournalRequests.on_every_database(PurgeContract)
