# frozen_string_literal: true

module Castellan
  class HTTPCache
    # Decides whether a response may be stored, and for how long it is fresh (RFC 9111 §3, §4.2).
    #
    #   policy = StoragePolicy.new(request, 200, fields, options, requested_at: 0.0, received_at: 0.2)
    #   policy.storable?                       # => true
    #   policy.build(content).remaining(now)   # => 59.8
    class StoragePolicy
      HEURISTIC = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501].freeze # RFC 9110 §15.1
      # The final status codes of RFC 9110, for must-understand.
      UNDERSTOOD = [200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 305, 307, 308, *400..417, 421, 422, 426, *500..505].freeze
      # These depend on request fields that are not part of the key: Range and conditions.
      PARTIAL = [206, 304, 412, 416].freeze
      # RFC 6585 forbids to store these, which concern one client or its network. A 407 needs Proxy-Authenticate, which
      # is not stored.
      UNSTORED = [407, 428, 429, 431, 511].freeze
      # Without these the content would be another, or for all requests.
      NEEDED = %w[content-encoding content-range content-type date vary].freeze
      private_constant :HEURISTIC, :UNDERSTOOD, :NEEDED, :UNSTORED

      # @return [Hash] normalized fields of the response
      attr_reader :fields

      # @param request [ClientRequest]
      # @param status [Integer]
      # @param fields [Hash] normalized
      # @param options [CacheOptions]
      # @param session [Boolean] whether the application has used a session: like Set-Cookie
      # @param requested_at [Float] seconds since 1970
      # @param received_at [Float] seconds since 1970
      def initialize(request, status, fields, options, requested_at:, received_at:, session: false)
        @request = request
        @status = status
        @fields = fields
        @options = options
        @session = session
        @requested_at = requested_at
        @received_at = received_at
        @control = targeted || Directives.parse(fields["cache-control"])
      end

      # @return [Boolean] whether the response may be stored
      def storable?
        final? && permitted? && (explicit? || heuristic?) && useful? && (@request.http_method != "POST" || timed?)
      end

      # @return [String, nil] why the response may not be stored, for `castellan cache explain`; nil if it may
      def refusal
        return if storable?
        return "a response with status #{@status}, Transfer-Encoding or events is never stored" unless final?
        return refused_by_fields unless permitted?
        return "no max-age, and the request has a cookie or other credentials" if @request.identified? && !explicit?
        return "its Cache-Control is malformed: write for example public, max-age=60" if @control.malformed?
        return "it has Pragma: no-cache" if !explicit? && legacy_no_cache?
        return "a response with status #{@status} is stored only with max-age, s-maxage or Expires" unless explicit? || heuristic?

        "it is stale at once and has no validator: send max-age or s-maxage, or ETag or Last-Modified"
      end

      # @return [Array<String>, nil] the fields in Vary; nil if it contains `*`
      def vary
        return @vary if defined?(@vary)

        @vary = Vary.names(@fields["vary"], @options.vary)
      end

      # @param content [String]
      # @param tags [Array<(String, String)>] see {Storage#tags}
      # @param head [Boolean] whether it is the response to a HEAD request
      # @return [StoredResponse]
      def build(content, tags: [], head: false)
        StoredResponse.new(status: @status, fields: HeaderFields.storable(@fields, excluded), content: content, received_at: @received_at,
                           initial_age: initial_age, lifetime: lifetime, flags: head ? [:head, *flags] : flags, tags: tags,
                           while_revalidate: @control.seconds("stale-while-revalidate") || 0,
                           if_error: @control.seconds("stale-if-error") || 0)
      end

      # @return [Integer, nil] the Date field, in seconds since 1970
      def date
        HTTPDate.parse(HeaderFields.first(@fields["date"]))
      end

      # @return [Array<String>] the field names in `private` and `no-cache` (RFC 9111 §5.2.2.4, §5.2.2.7)
      def excluded
        @excluded ||= [@control.fields("private"), @control.fields("no-cache")].grep(Array).flatten
      end

      private

      # The first valid targeted field replaces Cache-Control and Expires (RFC 9213 §2.2).
      def targeted
        @options.targeted_fields.each do |name|
          control = @fields.key?(name) && Directives.targeted(@fields[name])
          return @targeted = control if control
        end
        nil
      end

      # A body with Transfer-Encoding is encoded already, such as that of Rails' `render stream: true`. Events are of
      # the time when they are sent.
      def final?
        @status >= 200 && !UNSTORED.include?(@status) && (!PARTIAL.include?(@status) || part?) &&
          !@fields.key?("rack.hijack") && !@fields.key?("transfer-encoding") && !events?
      end

      def events?
        HeaderFields.first(@fields["content-type"]).to_s.match?(%r{\A\s*text/event-stream}i)
      end

      # A part that was never fresh is of little use: if the content has changed, its validation returns the whole.
      def part?
        @status == 206 && (timed? || lifetime.positive?) && !Parts.position(@fields).nil?
      end

      def permitted?
        return false if vary.nil? || @request.no_store? || @control.fields("private") == true
        return false if NEEDED.intersect?(excluded + HeaderFields.connection(@fields))
        return false if @control.key?("must-understand") ? !UNDERSTOOD.include?(@status) : @control.key?("no-store")
        return false if @request.authorized? && !shareable?
        return true if @options.set_cookie == :explicit && public?

        excluded.include?("set-cookie") || (@fields["set-cookie"].nil? && (!@session || vary.include?("cookie")))
      end

      def refused_by_fields
        return "its Vary contains * or is invalid" if vary.nil?
        return "the request has Cache-Control: no-store" if @request.no_store?

        word = %w[private no-store].find { |name| @control.key?(name) && @control.fields(name) == true }
        return "it is #{word} (#{@targeted ? @options.targeted_fields.find { |name| @fields.key?(name) } : "cache-control"})" if word
        return "the request has Authorization: send public, s-maxage or must-revalidate" if @request.authorized? && !shareable?
        return "it has Set-Cookie" if @fields.key?("set-cookie")
        return "the application has used the session: leave it alone, or send Vary: Cookie" if @session

        "its Cache-Control or Connection excludes a field that the content needs"
      end

      # RFC 9111 §3.5.
      def shareable?
        public? || @control.key?("must-revalidate")
      end

      def public?
        @control.key?("public") || @control.key?("s-maxage")
      end

      def explicit?
        @control.key?("public") || timed?
      end

      # Whether the response has explicit freshness, which a response to POST needs (RFC 9110 §9.3.3).
      def timed?
        @control.key?("s-maxage") || @control.key?("max-age") || expires?
      end

      def expires?
        @targeted.nil? && @fields.key?("expires")
      end

      # A response without explicit freshness may be personal, so it is not stored for a request that
      # identifies its sender.
      def heuristic?
        HEURISTIC.include?(@status) && !@request.identified? && !legacy_no_cache? && !@control.malformed?
      end

      def legacy_no_cache?
        !@fields.key?("cache-control") && @fields.key?("pragma") && HeaderFields.combined(@fields["pragma"]).downcase.include?("no-cache")
      end

      # A response that can neither be reused nor validated would only cost memory.
      def useful?
        return true if validator?

        !no_cache? && lifetime + [@control.seconds("stale-while-revalidate") || 0,
                                  @control.seconds("stale-if-error") || 0].max > initial_age
      end

      def validator?
        @fields.key?("etag") || !last_modified.nil?
      end

      def last_modified
        HTTPDate.parse(HeaderFields.first(@fields["last-modified"]))
      end

      def no_cache?
        @control.fields("no-cache") == true
      end

      def flags
        strict = @control.key?("must-revalidate") || @control.key?("proxy-revalidate") || @control.key?("s-maxage") || no_cache?
        [(:shareable if shareable?), (:strict if strict), (:no_cache if no_cache?), (:immutable if @control.key?("immutable")),
         (:anonymous unless explicit?)].compact
      end

      # RFC 9111 §4.2.1.
      # @return [Numeric] seconds
      def lifetime
        @lifetime ||= @control.seconds("s-maxage") || @control.seconds("max-age") || (expires? ? until_expires : estimate)
      end

      def until_expires
        expires = HTTPDate.parse(HeaderFields.first(@fields["expires"])) or return 0
        [expires - (date || @received_at), 0].max
      end

      # RFC 9111 §4.2.2: a fraction of the time since the last modification.
      def estimate
        return 0 unless @options.heuristic && (HEURISTIC.include?(@status) || @control.key?("public"))
        return 0 unless (modified = last_modified) && !legacy_no_cache? && !@control.malformed? # public; max-age=0

        (((date || @received_at) - modified) * @options.heuristic).clamp(0, @options.longest_heuristic)
      end

      # RFC 9111 §4.2.3.
      def initial_age
        @initial_age ||= begin
          apparent = [@received_at - (date || @received_at), 0].max
          apparent = 0 if apparent < 1 # Date has whole seconds
          [apparent, age_value + (@received_at - @requested_at)].max.to_f
        end
      end

      # Reads the first of several values and ignores an invalid one (RFC 9111 §5.1).
      def age_value
        value = HeaderFields.combined(@fields["age"]).to_s[/\A[\s,]*([^,]*)/, 1].strip
        value.match?(/\A\d+\z/) ? Directives.number(value) : 0
      end
    end
  end
end
