# frozen_string_literal: true

require "test_helper"
require_relative "example_process"

module PostsExampleTests
  include Castellan::ExamplePromises

  CORRECT = %w[naive not_modified document summary perforated fragment fragment_batched].freeze

  def test_the_whole_document_has_the_size_of_the_story
    %w[naive not_modified document public].each { |id| assert_in_delta 145_000, get(id).body.bytesize, 145_000 * 0.05, id }
    assert_in_delta 41_700, get("summary").body.bytesize, 41_700 * 0.05
  end

  def test_the_index_returns_a_hundred_published_posts_newest_first
    posts = example.json(path("naive"))
    assert_equal 100, posts.size
    assert_equal posts.map { |post| post["published_at"] }.sort.reverse, posts.map { |post| post["published_at"] }
    assert_equal 100, example.json(path("public")).size
  end

  def test_only_the_personal_fragment_runs_a_query_per_post
    get("naive")
    assert_equal 3, queries("naive")
    { "not_modified" => 4, "document" => 2, "summary" => 2, "perforated" => 2, "fragment" => 102, "fragment_batched" => 3,
      "public" => 1 }.each do |id, count|
      get(id)
      assert_equal count, queries(id), id
    end
  end

  def test_a_client_with_the_current_document_gets_304
    response = get("not_modified")
    again = get("not_modified", "If-None-Match" => response["ETag"])
    assert_equal "304", again.code
    assert_nil again.body
    assert_equal "304", get("not_modified_told", "If-Modified-Since" => get("not_modified_told")["Last-Modified"]).code
  end

  def test_the_published_validator_misses_an_author_s_new_name
    told = get("not_modified_told")
    correct = get("not_modified")
    rename do
      assert_equal "304", get("not_modified_told", "If-Modified-Since" => told["Last-Modified"]).code
      assert_equal "200", get("not_modified", "If-None-Match" => correct["ETag"]).code
      refute_equal told.body, get("naive").body
    end
  end

  def test_the_published_validator_misses_a_deleted_post
    headers = viewer(2)
    told = example.get(path("not_modified_told"), headers)
    correct = example.get(path("not_modified"), headers)
    assert_equal "204", example.request(Net::HTTP::Delete, "/posts/#{JSON.parse(told.body).last['id']}", headers).code
    assert_equal "304", example.get(path("not_modified_told"), headers.merge("If-Modified-Since" => told["Last-Modified"])).code
    assert_equal "200", example.get(path("not_modified"), headers.merge("If-None-Match" => correct["ETag"])).code
    each_correct { |id, patterns| assert_equal naive_without(patterns, headers), body_without(patterns, id, headers), id }
  end

  def test_after_an_author_s_edit_every_corrected_step_shows_it
    get("perforated_told")
    each_correct { |id, _| get(id) }
    rename do
      each_correct { |id, patterns| assert_equal naive_without(patterns), body_without(patterns, id), id }
      shared = example.json(path("public")).map { |post| post["author"] }.select { |author| author["id"] == 1 }
      assert_equal ["Ada Lovelace"], shared.map { |author| author["name"] }.uniq
      refute_equal get("summary").body, get("perforated_told").body
    end
  end

  def test_the_error_of_a_published_step_can_be_replayed_from_its_entry
    example.steps.select { |step| step["wrong_after"] }.each do |step|
      change = step["wrong_after"]
      assert step["told"]
      send_change(change, change["json"])
      send_change(change, change["restore"])
      assert_equal "Ada", example.json(path("naive"))[0]["author"]["name"]
    end
  end

  def test_the_published_fragment_is_an_array_of_booleans
    told = example.json(path("fragment_told"))
    assert_equal [false, true], told.uniq.sort_by(&:to_s)
    assert_equal example.json(path("fragment")).map { |post| post["read_before"] }, told
  end

  def test_read_marks_differ_between_viewers
    one, two = [1, 2].map { |id| example.json("/posts/fragment_batched", viewer(id)) }
    assert_equal [1], one.map { |post| post["author"]["id"] }.uniq
    assert_equal [2], two.map { |post| post["author"]["id"] }.uniq
    assert_equal([2], example.json(path("document"), viewer(2)).map { |post| post["author"]["id"] }.uniq)
  end

  def test_only_the_shared_document_is_public
    (CORRECT - ["naive"]).each { |id| assert_equal "max-age=0, private, must-revalidate", get(id)["Cache-Control"], id }
    assert_equal "max-age=0, public, must-revalidate", get("public")["Cache-Control"]
    assert_equal get("public").body, example.get(path("public"), {}).body
    assert_equal get("public").body, example.get(path("public"), viewer(2)).body
  end

  def test_a_post_s_details_have_the_comments_that_the_summary_leaves_out
    post = example.json(path("naive"))[0]
    2.times { assert_equal post, example.json("/posts/#{post['id']}") }
    refute_includes example.json(path("summary"))[0].keys, "comments"
    assert_equal "404", example.get("/posts/#{post['id']}", viewer(2)).code
  end

  def test_without_a_known_token_nothing_is_sent
    [{}, { "Authorization" => "Bearer nobody" }].each do |headers|
      [*(CORRECT + %w[not_modified_told perforated_told fragment_told]).map { |id| path(id) }, "/posts/571"].each do |path|
        response = example.get(path, headers)
        assert_equal "401", response.code, path
        assert_equal ["error"], JSON.parse(response.body).keys
      end
    end
  end

  def test_responses_contain_no_secret
    %w[naive public].each { |id| refute_match(/password|digest|token|secret/i, get(id).body) }
  end

  private

  def path(id) = example.step(id)["get"]
  def get(id, headers = {}) = example.get(path(id), viewer(1).merge(headers))
  def queries(id) = example.queries { assert_equal "200", get(id).code }
  def viewer(id) = { "Authorization" => "Bearer viewer-#{id}" }

  def rename
    assert_equal "200", example.request(Net::HTTP::Patch, "/profile", json: { name: "Ada Lovelace" }).code
    yield
  ensure
    example.request(Net::HTTP::Patch, "/profile", json: { name: "Ada" })
  end

  def send_change(change, json)
    response = example.request(Net::HTTP.const_get(change["method"].capitalize), change["path"], json: json)
    assert_equal "200", response.code
  end

  # Yields each corrected step with the declared differences up to and including it.
  def each_correct
    CORRECT.each do |id|
      yield id, (CORRECT.index(id) < CORRECT.index("summary") ? [] : %w[/*/comments /*/read_before])
    end
  end

  def naive_without(patterns, headers = viewer(1)) = body_without(patterns, "naive", headers)
  def body_without(patterns, id, headers = viewer(1)) = without(patterns, example.get(path(id), headers).body)
end

class PostsExampleOnSqliteTest < Minitest::Test
  include PostsExampleTests
  include Castellan::ExampleProcessPromises

  URL = Castellan::ExampleProcess.sqlite_url

  private

  def example = Castellan::ExampleProcess.started("posts", URL)
end

class PostsExampleOnPostgresTest < Minitest::Test
  include PostsExampleTests

  def setup
    needs :postgres
  end

  private

  def example
    @@url ||= Castellan::TestServers.postgres_url # rubocop:disable Style/ClassVars
    Castellan::ExampleProcess.started("posts", @@url)
  end
end
