# frozen_string_literal: true

require "open3"
require "rbconfig"

module Benchmarks
  # Measures time and peak memory of streamed documents, each in its own process.
  #
  #   Streamed.measure([1, 1_000, 100_000], nil)   # => [{ users: 1, ms: 9.1, us_per_user: 9100.0, peak_kb: 0, bytes: 220 }, …]
  #
  # `peak_kb` is the peak memory above that of a document with one user.
  module Streamed
    PROGRAM = File.expand_path("../../test/document/stream_program.rb", __dir__)
    LIB = File.expand_path("../../lib", __dir__)
    MOST_KB = 8 * 1024
    private_constant :PROGRAM, :LIB

    module_function

    # @param sizes [Array<Integer>]
    # @param url [String, nil] the URL of PostgreSQL; nil for SQLite
    # @return [Array<Hash>]
    def measure(sizes, url)
      sizes.map do |users|
        output, status = Open3.capture2(RbConfig.ruby, "-rbundler/setup", "-I#{LIB}", PROGRAM, users.to_s, *url)
        abort "#{PROGRAM} failed with #{users} users" unless status.success?

        peak, bytes, ms = output.split.map(&:to_f)
        { users: users, ms: ms, us_per_user: (ms * 1000 / users).round(2), peak_kb: peak.to_i, bytes: bytes.to_i }
      end
    end
  end
end
