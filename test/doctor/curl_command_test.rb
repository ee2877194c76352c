# frozen_string_literal: true

require "test_helper"

# curl commands as Chromium and Firefox copy them, and variants written by hand.
class CurlCommandTest < Minitest::Test
  CHROMIUM = <<~'SHELL'
    curl 'https://app.example:8443/users?filter[role]=admin&q=a%20b' \
      -H 'accept: application/json' \
      -H 'accept-language: de,en;q=0.9' \
      -b 'session=abc%3D; theme=dark' \
      -H 'if-none-match: W/"1"' \
      -H $'x-note: it\'s \u00e4 \\ \ud83d\ude00' \
      -H 'sec-ch-ua: "Chromium";v="120"' \
      --compressed
  SHELL
  FIREFOX = "curl 'http://localhost:3000/users' --compressed -X GET -H 'User-Agent: Mozilla/5.0 (X11)' -H 'Accept-Encoding: gzip, br' " \
            "-H 'Cookie: a=b' -H 'Connection: keep-alive'"

  def test_chromiums_command_with_cookies_and_bash_quotes
    request = parse(CHROMIUM)
    assert_equal "GET /users?filter[role]=admin&q=a%20b", request.to_s
    assert_equal "session=abc%3D; theme=dark", request.env["HTTP_COOKIE"]
    assert_equal "it's ä \\ 😀", request.env["HTTP_X_NOTE"]
    assert_equal '"Chromium";v="120"', request.env["HTTP_SEC_CH_UA"]
    assert_equal ["https", "app.example:8443"], request.env.values_at("rack.url_scheme", "HTTP_HOST")
  end

  def test_headers_that_affect_the_body_size_are_left_out
    env = parse(CHROMIUM).env
    refute env.key?("HTTP_IF_NONE_MATCH")
    refute parse(FIREFOX).env.key?("HTTP_ACCEPT_ENCODING")
  end

  def test_firefoxs_command_with_its_verb
    env = parse(FIREFOX).env
    assert_equal ["GET", "a=b", "Mozilla/5.0 (X11)"], env.values_at("REQUEST_METHOD", "HTTP_COOKIE", "HTTP_USER_AGENT")
  end

  def test_short_options_with_joined_or_separate_values
    request = parse("curl -sSkLXHEAD -uada:secret -A curl/8 -e http://a.example/ localhost:3000/x")
    assert_equal ["HEAD", "/x", "localhost:3000"], [request.verb, request.path, request.host]
    assert_equal "Basic YWRhOnNlY3JldA==", request.headers["Authorization"]
    assert_equal "curl/8", request.headers["User-Agent"]
  end

  def test_the_rest_of_a_shell_line_is_left_out
    ends = ["| jq .", "|jq '.data | length'", "> out.json", ">out.json", "2>/dev/null | less", "; echo 'done'", "&& echo", "&", "& jq .",
            "&> out.json", "\\\n  | jq ."]
    ends.each do |rest|
      request = parse("curl 'localhost:3000/x?a=1;2&&3' -H 'A: b | c > d; && e' #{rest}")
      assert_equal ["/x?a=1;2&&3", { "A" => "b | c > d; && e" }], [request.path, request.headers], rest
    end
    assert_equal "/x?a=1&b=2", parse("curl -s http://localhost:3000/x?a=1&b=2 | jq").path
    assert_equal "/x?a=1;2", parse('curl localhost/x?a=1\;2').path
  end

  def test_options_that_only_change_what_curl_prints_are_ignored
    request = parse("curl -gis -f --http1.1 --path-as-is -o out.json -w '%{http_code}' -m 5 'localhost:3000/x?fields[posts]=title'")
    assert_equal "/x?fields[posts]=title", request.path
  end

  def test_a_dollar_at_the_end_of_a_quoted_text_is_a_dollar
    assert_equal %w[a$ b], parse("curl '/x' -H 'One: a$' -H 'Two: b'").headers.values
  end

  def test_a_command_with_a_body_or_an_unknown_option_raises
    ["-d x=1", "-dx=1", "--data-raw '{}'", "--json '{}'", "-F a=b", "--data-binary=@file", "-T file", "-sd x"].each do |body|
      assert_includes refused("curl /x #{body}"), "it sends GET and HEAD only, without a body"
    end
    assert_includes refused("curl /x --proxy p"), "invalid option: --proxy"
    assert_includes refused("curl -X POST /x"), "GET and HEAD only, not POST"
  end

  def test_an_invalid_command_raises
    assert_includes refused("curl 'http://a.example/x"), "a quote is not closed in \"curl 'http://a.example/x\""
    assert_includes refused("curl -H 'A: b'"), "has no URL"
    assert_includes refused("wget http://a.example/x"), "more than one URL (wget, http://a.example/x); copy it as cURL (bash)"
    assert_includes refused("curl /x -H 'no colon'"), "is not of the form 'Name: value'"
    assert_includes refused("curl 'http://a b/'"), "is not a path or a URL"
  end

  private

  def parse(command) = Castellan::Doctor::CurlCommand.parse(command)
  def refused(command) = assert_raises(Castellan::Doctor::Error) { parse(command) }.message
end
