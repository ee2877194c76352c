# frozen_string_literal: true

module Castellan
  class HTTPCache
    # Builds Rack responses from stored ones, and adds a cache's fields to the application's.
    class Reply
      LARGEST_AGE = 2**31 # RFC 9111 §1.2.2
      # Members of Cache-Status => outcomes of {Cache::Events}; the first match counts
      KINDS = { /\Ahit; ttl=-/ => :stale, /\Ahit/ => :hit, /fwd=(?:bypass|method)/ => :pass,
                /collapsed/ => :wait, /fwd-status=304/ => :refresh, /fwd-status=5|detail=error/ => :error,
                // => :miss }.freeze
      private_constant :LARGEST_AGE, :KINDS

      # @param options [CacheOptions]
      def initialize(options)
        @options = options
        @status = options.cache_status
        @debug = @status == :debug
      end

      # @param request [ClientRequest]
      # @param stored [StoredResponse]
      # @param now [Float] seconds since 1970
      # @param outcome [String, nil] parameters of Cache-Status; nil for a hit
      # @param age [Boolean] false if the origin server has just validated it (RFC 9111 §5.1)
      # @param more [Hash, nil] fields for this client only
      # @param forwarded [Integer, nil] the application's status, added to `outcome` if the client gets another
      # @return [Array] Rack response
      def stored(request, stored, now, outcome: nil, age: true, more: nil, forwarded: nil)
        unmodified = not_modified?(request.original, stored)
        fields = unmodified ? stored.fields_of_304.dup : stored.fields.dup
        seconds = stored.age(now)
        fields["age"] = (seconds > LARGEST_AGE ? LARGEST_AGE : seconds.to_i).to_s if age
        fields.merge!(unmodified ? more.except(*HeaderFields::OF_CONTENT) : more) if more
        fields["set-cookie"] = fields["set-cookie"].dup if fields["set-cookie"].is_a?(Array) # sessions append theirs
        status, content = unmodified ? [304, HTTP::NOTHING] : selected(request, stored, fields)
        outcome = "#{outcome}; fwd-status=#{forwarded}" if forwarded && forwarded != status
        note(fields, request, outcome || "hit; ttl=#{(stored.lifetime - seconds).floor}")
        [status, fields, content]
      end

      # @return [Array] Rack response
      def forwarded(request, status, fields, body, outcome)
        fields = fields.dup # a streamed body is stored with its fields later
        fields["date"] ||= date
        note(fields, request, outcome)
        [status, fields, body]
      end

      # @return [Array] Rack response 504, if the cache must not or cannot forward the request (RFC 9111
      #   §5.2.1.7, §5.2.2.2)
      def gateway_timeout(request, detail)
        fields = { "content-type" => "text/plain", "cache-control" => "no-store", "content-length" => "16",
                   "date" => date }
        note(fields, request, "detail=#{detail}")
        [504, fields, request.head? ? [] : ["Gateway Timeout\n"]]
      end

      # @param env [Hash] of the client's request
      # @param stored [StoredResponse]
      # @return [Boolean] whether the client's conditions allow a 304; they apply only to 2xx responses (RFC
      #   9110 §13.2.1)
      def not_modified?(env, stored)
        (env.key?("HTTP_IF_NONE_MATCH") || env.key?("HTTP_IF_MODIFIED_SINCE")) &&
          (200..299).cover?(stored.status) && ClientConditions.not_modified?(env, stored)
      end

      private

      # RFC 9110 §6.6.1: a recipient with a clock adds a missing Date.
      def date
        HTTPDate.format(@options.now)
      end

      # Ranges apply only to a GET whose response is 200 (RFC 9110 §14.2).
      # @return [Array(Integer, Array<String>)] status and body
      def selected(request, stored, fields)
        return [stored.status, HTTP::NOTHING] if request.head?

        status, content = part(request.original, stored, fields) || [stored.status, stored.content]
        [status, content.empty? ? [] : [content]]
      end

      def part(env, stored, fields)
        range = env["HTTP_RANGE"]
        return unless range && (stored.incomplete? || (stored.status == 200 && ClientConditions.range?(env, stored)))

        ranges = Ranges.parse(range, stored.size)
        Ranges.answer(fields, stored, ranges) if ranges
      end

      # Appends this cache's member: caches closer to the origin server come first (RFC 9211 §2).
      def note(fields, request, outcome)
        publish(fields, outcome) if Cache::Events.wanted?
        return unless @status

        member = "Castellan; #{outcome}"
        member = "#{member}; key=\"#{request.url.b.gsub(/["\\]/) { |char| "\\#{char}" }.gsub(/[^\x20-\x7e]/n, "?")}\"" if @debug
        before = fields["cache-status"]
        fields["cache-status"] = before ? "#{HeaderFields.combined(before)}, #{member}" : member
      end

      # The duration in the event is about 0: most of the real one is the application's.
      def publish(fields, outcome)
        kind = KINDS.find { |pattern, _| pattern.match?(outcome) }.last
        length, age = fields.values_at("content-length", "age") unless %i[miss pass].include?(kind)
        Cache::Events.publish(:http, kind, Clock.monotonic_ns, bytes: length&.to_i, age: age&.to_f)
      end
    end
  end
end
