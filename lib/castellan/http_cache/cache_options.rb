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
        @max_body = whole(:max_body, max_body)
        @keep = number(:keep, keep)
        @heuristic = heuristic && number(:heuristic, heuristic)
        @longest_heuristic = number(:longest_heuristic, longest_heuristic)
        @set_cookie = SET_COOKIE.include?(set_cookie) ? set_cookie : refuse(:set_cookie, set_cookie, ":refuse or :explicit", ":refuse")
        @client_directives = client_directives
        @targeted_fields = Array(targeted).map { |name| name.to_s.downcase.freeze }.freeze
        @vary = names(:vary, vary)
        @cache_status = cache_status
        @wait = number(:wait, wait)
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
        return paths.map { |path| path.dup.freeze }.freeze if paths.all? { |path| path.is_a?(String) && path.start_with?("/") }

        refuse(name, value, "path prefixes that begin with a slash", "[\"/api\"]")
      end

      def names(name, value)
        names = Array(value).map { |field| field.to_s.downcase.freeze }
        return names.uniq.sort.freeze if names.all? { |field| field.match?(NAME) && field != "*" }

        refuse(name, value, "names of request fields", "[\"Accept\"]")
      end

      def whole(name, value)
        value.is_a?(Integer) && value.positive? ? value : refuse(name, value, "an Integer of bytes above 0", "1_048_576")
      end

      def number(name, value)
        value.is_a?(Numeric) && !value.negative? ? value : refuse(name, value, "a number that is not negative", "10")
      end

      def refuse(name, value, type, example)
        raise ConfigurationError, "Castellan::HTTPCache #{name}: must be #{type}, got #{value.inspect[0, 100]}; write for example " \
                                  "#{name}: #{example}"
      end
    end
  end
end
