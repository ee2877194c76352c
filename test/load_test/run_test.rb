# frozen_string_literal: true

require "test_helper"
require "castellan/load_test"
require "load_test/scripted_server"

class LoadTestRunTest < Minitest::Test
  OK = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

  def test_every_client_repeats_its_request
    against(OK, clients: 3, repetitions: 4) do |result, server|
      assert_equal [12, 12, 0, 60], [result.transactions, result.successful, result.failed, result.transferred_bytes]
      assert_equal [12, 3, 3], [server.requests.size, server.connections, result.connections]
      assert_predicate result, :ok?
      assert_in_delta 100.0, result.availability
    end
  end

  def test_the_figures_fit_together
    against(OK, clients: 2, repetitions: 50) do |result, _|
      least, mean, most = result.to_h.values_at(:min_ms, :mean_ms, :max_ms)
      assert_operator least, :<=, mean
      assert_operator mean, :<=, most
      assert_operator result.percentile(50), :<=, result.percentile(99)
      assert_in_delta 100 / result.elapsed, result.rate, 0.001
      assert_operator result.concurrency, :<=, 2.0
      assert_equal 500, result.to_h[:transferred_bytes]
    end
  end

  def test_two_results_are_one
    against(OK, clients: 2, repetitions: 5) do |result, _|
      both = result + result
      assert_equal [20, 100, 4], [both.successful, both.transferred_bytes, both.connections]
      assert_equal [result.rate, result.percentile(50), result.url], [both.rate, both.percentile(50), both.url]
      assert_equal 10, result.successful, "which stay as they are"
    end
  end

  def test_max_requests_bounds_all_clients_together
    against(OK, clients: 4, seconds: 30, max_requests: 10) { |result, _| assert_equal 10, result.transactions }
  end

  def test_seconds_limit_the_run
    against(OK, clients: 1, seconds: 0.2, max_requests: 10_000_000) do |result, _|
      assert_operator result.elapsed, :>=, 0.2
      assert_operator result.successful, :>, 0
    end
  end

  def test_without_keep_alive_every_request_has_its_connection
    against([OK, :close], clients: 2, repetitions: 3, keep_alive: false) do |result, server|
      assert_equal [6, 6, 6], [result.successful, result.connections, server.connections]
      assert_includes server.requests.first, "Connection: close"
    end
  end

  def test_it_reconnects_after_connection_close
    closing = ["HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", :close]
    against(closing, repetitions: 3) { |result, _| assert_equal [3, 0, 3], [result.successful, result.failed, result.connections] }
  end

  def test_http_1_0_is_kept_alive_only_on_request
    old = ["HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", :close]
    against(old, repetitions: 2) { |result, _| assert_equal [2, 2], [result.successful, result.connections] }
    kept = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok"
    against(kept, repetitions: 2) { |result, _| assert_equal [2, 1], [result.successful, result.connections] }
  end

  def test_an_idle_connection_that_the_server_closed_is_reopened
    against([OK, :close], repetitions: 3) { |result, _| assert_equal [3, 0, 3], [result.successful, result.failed, result.connections] }
  end

  def test_chunked_bodies_are_read_completely
    chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\nTrailer: 1\r\n\r\n"
    against(chunked, repetitions: 3) do |result, _|
      assert_equal [3, 36, 1], [result.successful, result.transferred_bytes, result.connections]
    end
  end

  def test_a_body_without_a_length_ends_with_its_connection
    against(["HTTP/1.1 200 OK\r\n\r\nhello", :close], repetitions: 2) do |result, _|
      assert_equal [2, 10, 2], [result.successful, result.transferred_bytes, result.connections]
    end
  end

  def test_responses_without_a_body_may_declare_a_length
    ["HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 900\r\n\r\n"].each do |answer|
      against(answer, repetitions: 3, expect: [200..299, 304]) do |result, _|
        assert_equal [3, 0, 1], [result.successful, result.transferred_bytes, result.connections]
      end
    end
  end

  def test_head_reads_no_body
    against("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", repetitions: 3, http_method: "HEAD") do |result, server|
      assert_equal [3, 1], [result.successful, result.connections]
      assert server.requests.first.start_with?("HEAD ")
    end
  end

  def test_interim_responses_are_skipped
    against("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n#{OK}", repetitions: 2) do |result, _|
      assert_equal [2, 10], [result.successful, result.transferred_bytes]
    end
  end

  def test_an_unexpected_status_is_a_response_and_a_failure
    against("HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno", repetitions: 3) do |result, _|
      assert_equal [3, 0, 3, { "status 500" => 3 }], [result.transactions, result.successful, result.failed, result.reasons]
      assert_in_delta 0.0, result.availability
      assert_in_delta 0.0, result.rate
      refute_predicate result, :ok?
    end
  end

  def test_a_304_fails_unless_it_is_expected
    against("HTTP/1.1 304 Not Modified\r\n\r\n", repetitions: 1) { |result, _| assert_equal({ "status 304" => 1 }, result.reasons) }
  end

  def test_a_truncated_body_is_a_failure
    against(["HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nhello", :close], repetitions: 2) do |result, _|
      assert_equal({ "the body ended after 5 of 900 bytes" => 2 }, result.reasons)
      assert_equal [0, 10], [result.transactions, result.transferred_bytes]
    end
  end

  def test_a_truncated_chunked_body_is_a_failure
    against(["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", :close], repetitions: 1) do |result, _|
      assert_equal({ "the server closed the connection before the answer was whole" => 1 }, result.reasons)
    end
  end

  def test_a_body_longer_than_declared_fails_the_next_response
    against("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more", repetitions: 2) do |result, _|
      assert_equal 1, result.failed
      assert_match(/not an HTTP answer: wrong status line/, result.reasons.keys.first)
    end
  end

  def test_a_truncated_head_is_not_retried
    against(OK, ["HTTP/1.1 200", :close], repetitions: 2) do |result, server|
      assert_equal [1, 1, 2], [result.successful, result.failed, server.requests.size]
    end
  end

  def test_a_reset_is_a_failure
    against(["HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n", :reset], repetitions: 1) do |result, _|
      assert_equal 1, result.failed
      assert_match(/reset|ended after 0 of 90/, result.reasons.keys.first)
    end
  end

  def test_a_response_that_is_not_http_is_a_failure
    against(["SSH-2.0-OpenSSH\r\n", :close], repetitions: 1) do |result, _|
      assert_match(/not an HTTP answer/, result.reasons.keys.first)
    end
  end

  def test_a_server_that_does_not_respond_times_out
    against([:hang], repetitions: 1, timeout: 0.05) { |result, _| assert_equal({ "timed out" => 1 }, result.reasons) }
  end

  def test_a_server_that_sends_single_bytes_times_out
    drip = ["HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", *Array.new(400) { ["x", :pause] }.flatten]
    ScriptedServer.open([drip]) do |server|
      server.define_singleton_method(:send_part) { |socket, part| part == :pause ? sleep(0.01) : socket.write(part) }
      assert_equal({ "timed out" => 1 }, run_against(server, repetitions: 1, timeout: 0.1).reasons)
    end
  end

  def test_a_refused_connection_is_counted_and_given_up
    result = Castellan::LoadTest.run("http://127.0.0.1:#{free_port}/", clients: 4, seconds: 60, max_requests: 1_000_000)
    assert_equal ["connection refused"], result.reasons.keys
    assert_predicate result, :given_up?
    assert_operator result.failed, :<, 1_024 + 4
    assert_nil result.to_h[:mean_ms]
  end

  # Labels of 64 characters are rejected without a DNS query.
  def test_an_unknown_host_is_named
    reasons = Castellan::LoadTest.run("http://#{"x" * 64}.invalid/", clients: 1, repetitions: 1).reasons
    assert_match(/host was not found/, reasons.keys.first)
  end

  def test_stop_ends_the_run_and_returns_its_measurements
    ScriptedServer.open([OK, OK, [:hang]]) do |server|
      run = Castellan::LoadTest::Run.new(server.url, clients: 1, seconds: 60, timeout: 60,
                                                     progress: ->(_, requests) { run.stop if requests == 2 })
      result = run.call
      assert_equal [2, 0], [result.successful, result.failed]
      assert_predicate result, :interrupted?
      assert_includes result.to_text, "Interrupted"
    end
  end

  def test_invalid_limits_raise
    { clients: 0, repetitions: 1.5, seconds: -1, max_requests: 0, timeout: 0 }.each do |name, value|
      error = assert_raises(Castellan::ConfigurationError) { Castellan::LoadTest.run("http://127.0.0.1/", name => value) }
      assert_includes error.message, "#{name}:"
    end
    assert_raises(Castellan::ConfigurationError) { Castellan::LoadTest.run("http://127.0.0.1/", clients: 1_001) }
  end

  def test_puma_is_measured_with_more_clients_than_threads
    body = "x" * 145_000
    Castellan::TestServers.puma(->(_env) { [200, { "content-length" => body.bytesize.to_s }, [body]] }) do |url|
      result = Castellan::LoadTest.run(url, clients: 10, repetitions: 10)
      assert_equal 100 * body.bytesize, result.transferred_bytes
      assert_operator result.availability, :>=, 99
    end
  end

  private

  def against(*answers, scheme: "http", **options)
    ScriptedServer.open(answers) { |server| yield run_against(server, scheme: scheme, **options), server }
  end

  def run_against(server, scheme: "http", clients: 1, **options)
    Castellan::LoadTest.run(server.url.sub("http", scheme), clients: clients, **options)
  end
end
