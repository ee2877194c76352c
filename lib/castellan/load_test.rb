# frozen_string_literal: true

require_relative "errors"
require_relative "clock"
require_relative "figures"

module Castellan
  # Runs a closed-loop load test: each client sends its next request after it has read the response.
  #
  #   result = Castellan::LoadTest.run("http://127.0.0.1:3000/posts", clients: 10, seconds: 5)
  #   result.rate           # => 163.93 successful requests per second
  #   result.percentile(99) # => 91_204_607 nanoseconds
  #   puts result.to_text
  #
  # A run ends by seconds or repetitions, by `max_requests:`, and after 1,024 failures. The clients share one
  # process and one core; each request takes 45 to 100 µs of it, so a run measures at most 10 to 20 thousand
  # requests per second; for a faster server, use wrk. HTTP/1 without request bodies only.
  #
  # A closed loop slows down with its server, so its percentiles hide the waiting time of users ("coordinated
  # omission"): use them to compare endpoints, not to promise latencies.
  module LoadTest
    # @param url [String] http:// or https://
    # @param options see {Run#initialize}
    # @return [Summary]
    # @raise [ConfigurationError] if the URL, a header or a limit is invalid
    def self.run(url, **options) = Run.new(url, **options).call
  end
end

require_relative "load_test/prepared_request"
require_relative "load_test/connection"
require_relative "load_test/counts"
require_relative "load_test/budget"
require_relative "load_test/client"
require_relative "load_test/summary"
require_relative "load_test/run"
