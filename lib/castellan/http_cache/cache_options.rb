# frozen_string_literal: true

module Castellan
  class HTTPCache
    # Checks the options of a cache at boot. Frozen; {HTTPCache#initialize} documents them.
    class CacheOptions
      SET_COOKIE = %i[refuse explicit].freeze
      private_constant :SET_COOKIE

      NAME = /\A[!#$%&'*+.^_`|~0-9A-Za-z-]+\z/
      private_constant :NAME

      attr_reader :max_body, :keep, :heuristic, :longest_heuristic, :set_cookie, :client_directives,
                  :targeted_fields, :vary, :cache_status, :wait, :clock

      # @raise [ConfigurationError]
      def initialize(max_body: 4 * 1024 * 1024, keep: 86_400, heuristic: 0.1, longest_heuristic: 86_400, set_cookie: :refuse,
                     client_directives: true, targeted: %w[CDN-Cache-Control], vary: [], cache_status: true,
                     wait: 10, clock: Clock, only: nil, except: nil)
        @max_body = OptionCheck.whole(HTTPCache, :max_body, max_body, "1_048_576", unit: "bytes")
        @keep = seconds(:keep, keep, "86_400")
        @heuristic = heuristic && number(:heuristic, heuristic, "a share of the time since Last-Modified, 0 or more, or false", "0.1")
        @longest_heuristic = seconds(:longest_heuristic, longest_heuristic, "86_400")
        @set_cookie = one_of(:set_cookie, set_cookie, SET_COOKIE, ":refuse or :explicit")
        @client_directives = one_of(:client_directives, client_directives, [true, false], "true or false")
        @targeted_fields = names(:targeted, targeted, "response fields", "CDN-Cache-Control")
        @vary = names(:vary, vary, "request fields", "Accept").sort.freeze
        @cache_status = one_of(:cache_status, cache_status, [true, false, :debug], "true, false or :debug")
        @wait = seconds(:wait, wait, "10")
        @clock = clock
        @only = prefixes(:only, only)
        @except = prefixes(:except, except)
        freeze
      end

      # @return [Float] seconds since 1970
      def now
        @clock.equal?(Clock) ? Process.clock_gettime(Process::CLOCK_REALTIME) : @clock.now.to_f
      end

      # @param path [String]
      # @return [Boolean] whether `only:` and `except:` let the cache handle the path
      def handles?(path)
        path = path.squeeze("/") if path.include?("//") # routers do so
        return false if @only && !below?(@only, path)

        !(@except && below?(@except, path))
      end

      private

      # "/api" matches /api and /api/posts, but not /apix; "/api/" matches only the paths below it.
      def below?(prefixes, path)
        prefixes.any? do |prefix|
          path.start_with?(prefix) && (prefix.end_with?("/") || path.size == prefix.size || path.getbyte(prefix.bytesize) == 47)
        end
      end

      def prefixes(name, value)
        return if value.nil?

        paths = Array(value)
        check(name, value, "path prefixes that begin with a slash, or nil for all paths", "[\"/api\"]") do
          paths.all? { |path| path.is_a?(String) && path.start_with?("/") } && (paths.any? || name == :except)
        end
        paths.map { |path| path.dup.freeze }.freeze
      end

      def names(name, value, type, example)
        names = Array(value).map { |field| field.to_s.downcase.freeze }.uniq.freeze
        check(name, value, "names of #{type}", [example].inspect) { names.all? { |field| field.match?(NAME) && field != "*" } }
        names
      end

      def one_of(name, value, values, type)
        check(name, value, type, values.first.inspect) { values.include?(value) }
      end

      def seconds(name, value, example) = number(name, value, "seconds, 0 or more", example)

      def number(name, value, type, example)
        check(name, value, type, example) { OptionCheck.number?(value) && !value.negative? }
      end

      def check(...) = OptionCheck.check(HTTPCache, ...)
    end
  end
end
