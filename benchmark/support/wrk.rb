# frozen_string_literal: true

module Benchmarks
  # Measures the rate at which a server responds, with wrk: a client in Ruby needs more processor time for each
  # request than the server, and would then measure itself.
  #
  #   Wrk.rate("http://127.0.0.1:9292/", clients: 10, seconds: 1)   # => 7241.5 requests per second
  module Wrk
    # @param url [String]
    # @param seconds [Integer]
    # @param headers [Hash{String => String}]
    # @param lost [Integer] responses that may be missing
    # @return [Float]
    # @raise [SystemExit] for a status other than 2xx and 3xx, if more responses are missing, and without wrk
    def self.rate(url, clients:, seconds:, headers: {}, lost: 0)
      fields = headers.flat_map { |name, value| ["-H", "#{name}: #{value}"] }
      output = IO.popen(["wrk", "-t1", "-c#{clients}", "-d#{seconds}s", *fields, url], err: %i[child out], &:read)
      errors = output[/Socket errors: (.*)/, 1].to_s.scan(/\d+/).sum(&:to_i)
      abort "#{url}: #{output}" if !$?.success? || output.include?("Non-2xx") || errors > lost
      output[%r{Requests/sec:\s+([\d.]+)}, 1].to_f
    rescue Errno::ENOENT
      abort "This benchmark needs wrk; install Debian's package of that name."
    end
  end
end
