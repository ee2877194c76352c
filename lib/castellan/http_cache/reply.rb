# frozen_string_literal: true

module Castellan
  class HTTPCache
    # Makes Rack responses: from stored ones, and of the application with the fields that a cache adds.
    class Reply
      LARGEST_AGE = 2**31 # RFC 9111 §1.2.2
      # Not an Array: for that, Puma sends "content-length: 0", which in a 304 is the length of the stored content (RFC 9110 §8.6).
      NOTHING = [].freeze.each.freeze
      # Members of Cache-Status => outcomes of {Cache::Events}; the first match counts
      KINDS = { /\Ahit; ttl=-/ => :stale, /\Ahit/ => :hit, /fwd=(?:bypass|method)/ => :pass,
                /collapsed/ => :wait, /fwd-status=304/ => :refresh, /fwd-status=5|detail=error/ => :error,
                // => :miss }.freeze
      private_constant :LARGEST_AGE, :NOTHING, :KINDS

      # @param options [CacheOptions]
      def initialize(options)
        @status = options.cache_status
        @debug = @status == :debug
        @clock = options.clock
      end

      # @param request [ClientRequest]
      # @param stored [StoredResponse]
      # @param now [Float] seconds since 1970
      # @param outcome [String, nil] parameters of Cache-Status; nil for a hit
      # @param age [Boolean] false if the origin server has just validated it (RFC 9111 §5.1)
      # @param more [Hash] fields of this answer alone
      # @return [Array] Rack response
      def stored(request, stored, now, outcome: nil, age: true, more: nil)
        fields = stored.fields.dup
        seconds = stored.age(now)
        fields["age"] = (seconds > LARGEST_AGE ? LARGEST_AGE : seconds.to_i).to_s if age
        fields.merge!(more) if more
        note(fields, request, outcome || "hit; ttl=#{(stored.lifetime - seconds).floor}")
        status, content = selected(request.original, stored, fields)
        return [status, fields, NOTHING] if status == 304
        return [status, fields, []] if request.head?

        [status, fields, content.empty? ? [] : [content]]
      end

      # @return [Array] Rack response
      def forwarded(request, status, fields, body, outcome)
        fields = fields.dup # a streamed body is stored with its fields later
        fields["date"] ||= date
        note(fields, request, outcome)
        [status, fields, body]
      end

      # @return [Array] Rack response of a cache that must not or cannot ask the application (RFC 9111 §5.2.1.7, §5.2.2.2)
      def gateway_timeout(request, detail)
        fields = { "content-type" => "text/plain", "cache-control" => "no-store", "content-length" => "16",
                   "date" => date }
        note(fields, request, "detail=#{detail}")
        [504, fields, request.head? ? [] : ["Gateway Timeout\n"]]
      end

      private

      # RFC 9110 §6.6.1: a recipient with a clock adds the Date that is missing.
      def date
        HTTPDate.format(@clock.now.to_f)
      end

      # Conditions count where the response is 2xx (RFC 9110 §13.2.1), ranges where it is 200 (§14.2).
      def selected(env, stored, fields)
        return [stored.status, stored.content] unless (200..299).cover?(stored.status)
        return not_modified(fields) if (env.key?("HTTP_IF_NONE_MATCH") || env.key?("HTTP_IF_MODIFIED_SINCE")) &&
                                       ClientConditions.not_modified?(env, stored)

        range = env["HTTP_RANGE"]
        if range && stored.status == 200 && env["REQUEST_METHOD"] == "GET" && ClientConditions.range?(env, stored)
          ranges = Ranges.parse(range, stored.content.bytesize)
          return Ranges.answer(fields, stored.content, ranges) if ranges
        end
        [stored.status, stored.content]
      end

      def not_modified(fields)
        HeaderFields::OF_CONTENT.each { |name| fields.delete(name) }
        [304, ""]
      end

      # Appends the member of this cache: the caches between it and the origin server come first (RFC 9211 §2).
      def note(fields, request, outcome)
        publish(fields, outcome) if Cache::Events.wanted?
        return unless @status

        member = "Castellan; #{outcome}"
        member = "#{member}; key=\"#{request.url.b.gsub(/["\\]/) { |char| "\\#{char}" }.gsub(/[^\x20-\x7e]/n, "?")}\"" if @debug
        before = HeaderFields.combined(fields["cache-status"])
        fields["cache-status"] = before ? "#{before}, #{member}" : member
      end

      # One event for each response. Without a duration, because most of it is the application's.
      def publish(fields, outcome)
        kind = KINDS.find { |pattern, _| pattern.match?(outcome) }.last
        length, age = fields.values_at("content-length", "age") unless %i[miss pass].include?(kind)
        Cache::Events.publish(:http, kind, Clock.monotonic_ns, bytes: length&.to_i, age: age&.to_f)
      end
    end
  end
end
