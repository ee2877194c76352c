# frozen_string_literal: true

require_relative "errors"
require_relative "clock"

module Castellan
  # A closed-loop load test over real sockets: each client sends its next request when the answer to its last one is whole.
  #
  #   result = Castellan::LoadTest.run("http://127.0.0.1:3000/posts", clients: 10, seconds: 5)
  #   result.rate          # => 163.93 successful requests a second
  #   result.percentile(99) # => 91_204_607 nanoseconds
  #   puts result.to_text
  #
  # Always bounded, by seconds or repetitions, by max_requests:, and by 1,024 failures. HTTP is read by the standard
  # library; OpenSSL is loaded for an https URL only. The clients share one process and so one core: about 45 to 100 µs of
  # it go into each request, which is the limit of what can be measured (10 to 20 thousand requests a second).
  #
  # A closed loop slows down with its server, so its percentiles hide the waiting of users who would have come anyway
  # ("coordinated omission"): compare endpoints with it, do not promise latencies from it. Not for HTTP/2, and not for
  # requests with a body.
  module LoadTest
    # @param url [String] http:// or https://
    # @param options see {Run#initialize}
    # @return [Summary]
    # @raise [ConfigurationError] when the URL, a header or a limit makes no sense
    def self.run(url, **options)
      Run.new(url, **options).call
    end
  end
end

require_relative "load_test/histogram"
require_relative "load_test/prepared_request"
require_relative "load_test/connection"
require_relative "load_test/counts"
require_relative "load_test/budget"
require_relative "load_test/client"
require_relative "load_test/summary"
require_relative "load_test/run"
