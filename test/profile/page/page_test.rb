# frozen_string_literal: true

require "test_helper"
require "rack"
require "rack/lint"
require "rack/mock"
require "support/profiles"

# The page as a Rack application: what is where, with which headers, and what is refused.
class ProfilePageTest < Minitest::Test
  Profiles = Castellan::Profiles

  def test_every_page_may_load_its_own_files_and_nothing_else
    ["", "/requests/deep", "/compare?a=slow&b=fast", "/requests/none"].each do |path|
      policy = directives(get(path))
      assert_equal ["'none'"], policy["default-src"]
      assert_equal ["'self'"], policy["script-src"]
      assert_equal ["'self'"], policy["style-src"]
      assert_equal ["'none'"], policy["frame-ancestors"]
    end
  end

  def test_no_response_is_cached_or_sniffed
    %w[/ /latest /requests.json /requests/deep /requests/deep.json /requests/deep.html /requests/deep.flame.json /badge.js
       /assets/page.css /speedscope/index.html /none].each do |path|
      headers = get(path).headers
      assert_equal %w[no-store nosniff no-referrer same-origin],
                   headers.values_at("cache-control", "x-content-type-options", "referrer-policy", "cross-origin-resource-policy"), path
      assert headers.key?("content-security-policy"), path
    end
  end

  def test_only_the_flame_graph_may_be_framed_and_only_by_the_page
    assert_equal ["'self'"], directives(get("/speedscope/index.html"))["frame-ancestors"]
    assert_equal ["'none'"], directives(get("/assets/page.js"))["frame-ancestors"]
  end

  def test_findings_are_labelled_like_those_of_the_command_line
    assert_equal %w[loaded sent], get("/requests/slow").body.scan(%r{<dt>(\w+)</dt><dd>(?:at|\d+ records at)}).flatten.uniq.sort
  end

  def test_only_get_and_head_are_allowed
    %w[POST PUT PATCH DELETE OPTIONS TRACE].each do |method|
      response = client.request(method, "/castellan")
      assert_equal [405, "GET, HEAD"], [response.status, response.headers["allow"]]
    end
  end

  def test_head_responds_like_get_without_a_body
    get = client.get("/castellan/requests/slow")
    head = client.request("HEAD", "/castellan/requests/slow")
    assert_equal [200, get.headers["content-length"], ""], [head.status, head.headers["content-length"], head.body]
  end

  def test_a_path_of_a_client_is_never_a_path_of_the_disk
    ["/assets/../page.rb", "/assets/..%2fpage.rb", "/assets/%2e%2e/page.rb", "/speedscope/../../castellan.gemspec", "/assets//etc/passwd",
     "/speedscope/README.md", "/assets/page.rb", "/assets/index_page.html.erb", "/page.rb", "/requests/../assets/page.rb"].each do |path|
      assert_equal 404, get(path).status, path
    end
  end

  def test_every_file_that_speedscope_references_exists
    html = get("/speedscope/index.html").body
    names = html.scan(/(?:src|href)="([^"]+)"/).flatten
    style = names.find { |name| name.end_with?(".css") }
    names += get("/speedscope/#{style}").body.scan(%r{url\("\./([^"]+)"\)}).flatten
    assert_operator names.size, :>=, 5
    assert_equal [200], names.map { |name| get("/speedscope/#{name}").status }.uniq
  end

  def test_a_missing_profile_is_explained
    assert_includes get("/requests/none").body, "or no longer"
    paths = ["/requests/none", "/requests/slow.flame.json", "/compare?a=slow", "/other"]
    assert_equal [404], paths.map { |path| get(path).status }.uniq
  end

  def test_the_list_is_narrowed_by_endpoint_and_status
    results = Profiles.kept(Profiles.slow, Profiles.fast(id: "lost", status: 404, endpoint: "GET /users/:id"))
    assert_equal %w[lost], ids("?status=404", results)
    assert_equal %w[lost], ids("?status=4xx", results)
    assert_equal %w[slow], ids("?endpoint=GET+users%23index", results)
    assert_equal %w[lost slow], ids("", results)
    assert_equal %w[lost slow], ids("?status=&endpoint=", results)
  end

  def test_the_median_of_an_endpoint_leaves_out_what_slows_a_request_down
    sql = Profiles.slow(id: "sql", duration_ns: 2_000_000)
    deep = Profiles.slow(id: "cpu", depth: "cpu", duration_ns: 9_000_000)
    body = get("", Profiles.kept(sql, deep, Profiles.slow(id: "wall", depth: "wall", duration_ns: 9_000_000),
                                 Profiles.fast(endpoint: "GET posts#index"))).body
    assert_includes body, 'data-name="Requests">3</td><td class="figure lead" data-name="Median">2.00 ms</td>'
  end

  def test_the_statuses_that_are_listed_can_be_chosen
    body = get("?status=418", Profiles.kept(Profiles.slow(status: 418))).body
    assert_includes body, '<option value="418" selected>418</option>'
    assert_includes body, '<option value="4xx">4xx</option>'
  end

  def test_a_truncated_list_is_marked
    results = Profiles.kept(*Array.new(51) { |n| Profiles.fast(id: "r#{n}") })
    assert_equal 50, ids("", results).size
    assert_includes get("", results).body, "The latest 50 are listed"
    refute_includes get("").body, "The latest 50"
  end

  def test_an_invalid_query_is_ignored
    ["status=%FF", "=&endpoint&%", "status[]=1&status[x]=2", "a=%", "status=#{"4" * 5_000}", "\xFF"].each do |query|
      env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/castellan", "QUERY_STRING" => query }
      assert_equal 200, Castellan::Profile::Page.new(store: kept).call(env).first, query
    end
  end

  def test_invalid_bytes_in_a_query_are_ignored
    page = Castellan::Profile::Page.new(store: kept)
    ask = ->(path, **env) { page.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => path }.merge(env.transform_keys(&:to_s))).first }
    assert_equal [404, 404], [ask.call("/castellan/\xFF"), ask.call("/castellan/requests/\xFF".b)]
    assert_equal 200, ask.call("/castellan/latest", HTTP_IF_NONE_MATCH: "\xFF")
    assert_equal 200, ask.call("/castellan/requests/slow", HTTP_HOST: "\xFF", SCRIPT_NAME: "/\xFF")
  end

  def test_the_latest_requests_have_a_validator_that_changes_with_them
    results = Profiles.kept(Profiles.slow)
    etag = get("/latest", results).headers["etag"]
    unchanged = get("/latest", results, "HTTP_IF_NONE_MATCH" => etag)
    assert_equal [304, ""], [unchanged.status, unchanged.body]
    results.add(Profiles.fast)
    assert_equal 200, get("/latest", results, "HTTP_IF_NONE_MATCH" => etag).status
  end

  def test_a_validator_is_of_a_store_and_not_of_a_number
    etag = get("/latest", Profiles.kept(Profiles.slow)).headers["etag"]
    assert_equal 200, get("/latest", Profiles.kept(Profiles.fast), "HTTP_IF_NONE_MATCH" => etag).status
    assert_equal 200, get("/latest", Profiles.kept, "HTTP_IF_NONE_MATCH" => etag).status
    ['"0."', '"1.."', "*", '"-1.slow"', "\"#{"9" * 400}.slow\""].each do |odd|
      assert_equal 200, get("/latest", Profiles.kept(Profiles.slow), "HTTP_IF_NONE_MATCH" => odd).status, odd
    end
  end

  def test_results_outside_of_the_filter_do_not_change_the_validator
    results = Profiles.kept(Profiles.slow(status: 500))
    etag = get("/latest?status=5xx", results).headers["etag"]
    results.add(Profiles.fast)
    assert_equal 304, get("/latest?status=5xx", results, "HTTP_IF_NONE_MATCH" => etag).status
  end

  def test_a_result_as_data_is_the_result
    data = JSON.parse(get("/requests/deep.json").body)
    assert_equal Profiles.deep(at: 1_700_000_050.0), Castellan::Profile::Result.from_h(data)
    assert_equal Profiles.flame, JSON.parse(get("/requests/deep.flame.json").body)
  end

  def test_links_hold_below_a_mount_point_and_at_another_path
    application = Castellan::Profile::Page.new(store: Profiles.kept(Profiles.slow), path: "/admin/speed")
    body = Rack::MockRequest.new(application).get("/admin/speed", "SCRIPT_NAME" => "/api").body
    assert_includes body, 'href="/api/admin/speed/requests/slow"'
    assert_equal [], body.scan(/(?:href|src|action)="([^"]+)"/).flatten.reject { |link| link.start_with?("/api/admin/speed", "#") }
  end

  def test_the_curl_command_uses_the_host_of_the_page
    body = get("/requests/slow", "HTTP_HOST" => "api.example.com", "rack.url_scheme" => "https").body
    assert_includes body, "curl &#39;https://api.example.com/users?role=Administrator&amp;token=[FILTERED]&#39;"
  end

  def test_a_profile_with_fifty_thousand_queries_is_a_page_of_bearable_size
    queries = Array.new(50_000) { |n| Profiles.query("select #{n % 300}", n * 4_000, 3_000, "app/a.rb:#{n % 200}:in `a'") }
    result = Profiles.slow(id: "many", queries: queries, findings: [])
    body = Castellan::Profile::Page::ResultView.new(result, origin: "http://localhost", root: "/castellan").to_s
    assert_operator body.bytesize, :<, 2_000_000
    assert body.include?("and 200 more statements")
  end

  def test_a_profile_in_which_nothing_was_recorded_is_shown
    empty = Castellan::Profile::Result.new(id: "empty", path: "/", method: "GET")
    response = get("/requests/empty", Profiles.kept(empty))
    assert_equal 200, response.status
    assert_includes response.body, "Nothing stands out"
    assert_equal 200, get("/compare?a=empty&b=empty", Profiles.kept(empty)).status
  end

  def test_each_request_links_to_its_comparison_with_the_previous_one
    older = Profiles.slow(id: "older", at: 1_699_999_000.0)
    other = Profiles.fast(id: "other", at: 1_699_999_500.0, endpoint: "GET other#index")
    results = Profiles.kept(other, older, Profiles.deep, Profiles.slow, Profiles.fast(id: "new", endpoint: "GET new#index"))
    links = get("", results).body.scan(/compare\?a=(\w+)&amp;b=(\w+)/)
    assert_equal [%w[older slow], %w[older deep]], links, "of its endpoint and status, and of its depth where there is one"
    links.each { |before, after| assert_equal 200, get("/compare?a=#{before}&b=#{after}", results).status }
  end

  def test_a_request_proposes_what_it_can_be_compared_with_best
    others = [Profiles.deep(id: "older", at: 1_600_000_000.0), Profiles.slow(id: "mine", at: 1_600_000_001.0),
              Profiles.slow(id: "alike", at: 1_600_000_002.0), Profiles.fast(id: "last", endpoint: "GET other#index")]
    { "mine" => "older", "alike" => "mine", "older" => "mine", "last" => nil }.each do |id, other|
      assert_equal [other].compact,
                   get("/requests/#{id}", Profiles.kept(*others)).body.scan(/<option value="(\w+)" [^>]*selected>/).flatten, id
    end
  end

  def test_a_request_is_never_proposed_beside_one_of_another_endpoint_or_status
    results = Profiles.kept(Profiles.slow(id: "ok", at: 1.0), Profiles.slow(id: "failed", at: 2.0, status: 500),
                            Profiles.slow(id: "elsewhere", at: 3.0, endpoint: "GET other#index"), Profiles.slow(id: "again", at: 4.0))
    assert_equal [%w[ok again]], get("", results).body.scan(/compare\?a=(\w+)&amp;b=(\w+)/)
    assert_equal %w[ok], get("/requests/again", results).body.scan(/<option value="(\w+)"/).flatten
    refute_includes get("/requests/failed", results).body, "Compare with"
  end

  def test_plain_text_is_not_marked_as_code
    assert_includes get("/requests/fast").body, "<b>Next</b> a profile of depth cpu"
    assert_includes get("/requests/slow").body, "<b>Next</b> <code>add .preload"
  end

  def test_two_are_always_proposed_where_there_are_two
    body = get("", Profiles.kept(Profiles.deep, Profiles.fast)).body
    assert_equal %w[deep fast], body.scan(/<input type="radio" name="[ab]" value="(\w+)" checked>/).flatten.sort
  end

  def test_times_of_a_deeper_profile_have_no_bar
    rows = get("", Profiles.kept(Profiles.deep(duration_ns: 9_000_000_000), Profiles.slow)).body.scan(%r{<tr data-id.*?</tr>}m)
    assert_equal([true, false], rows.map { |row| row.include?('class="bar') })
  end

  def test_failed_requests_can_be_chosen
    results = Profiles.kept(Profiles.fast, Profiles.fast(id: "broken", status: nil, exception: "KeyError"))
    assert_includes get("", results).body, '<option value="none">none</option>'
    assert_equal ["broken"], ids("?status=none", results)
    refute_includes get("", Profiles.kept(Profiles.fast)).body, '<option value="none">'
  end

  def test_a_request_without_a_response_has_a_reason_instead_of_a_size
    body = get("/requests/broken", Profiles.kept(Profiles.fast(id: "broken", status: nil, exception: "KeyError", response_bytes: 0))).body
    assert_match(%r{Response</dt><dd>–</dd><dd class="small">nothing was answered}, body)
    body = get("/requests/taken", Profiles.kept(Profiles.fast(id: "taken", status: nil, response_bytes: nil))).body
    assert_match(%r{Response</dt><dd>–</dd><dd class="small">the connection was taken over}, body)
  end

  def test_an_empty_list_names_the_next_step
    assert_includes get("", Profiles.kept).body, "Nothing was profiled yet"
  end

  private

  def get(path, results = kept, env = {})
    results, env = kept, results if results.is_a?(Hash)
    client(results).get("/castellan#{path}", env)
  end

  def kept = @kept ||= Profiles.kept(Profiles.slow, Profiles.deep(at: 1_700_000_050.0), Profiles.fast)

  def client(results = kept)
    Rack::MockRequest.new(Rack::Lint.new(Castellan::Profile::Page.new(store: results)))
  end

  def ids(query, results) = get(query, results).body.scan(/data-id="([^"]+)"/).flatten

  def directives(response)
    response.headers["content-security-policy"].split("; ").to_h { |directive| directive.split(" ", 2) }.transform_values(&:split)
  end
end
