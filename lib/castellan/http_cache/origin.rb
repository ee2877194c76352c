# frozen_string_literal: true

require "socket"
require "timeout"

module Castellan
  class HTTPCache
    # Forwards requests to the application and stores its responses (RFC 9111 §3, §4.3).
    class Origin
      # response: for the client; shared: a {Shared} that other requests may use, or nil; status: the
      # application's, if the client got a 304 instead
      Fetched = Struct.new(:response, :shared, :status)
      # A response for waiting requests, with the request fields that it depends on. outcome: :stored,
      # :outdated or :refused (see {Storage#write}); :failed if a stale response replaces an error, and
      # :disconnected if the application could not reach its own server
      Shared = Struct.new(:stored, :names, :signature, :outcome) do
        def shareable? = %i[stored failed disconnected].include?(outcome)
      end
      # Raised by an application that is a client of another server, while that server is down.
      DISCONNECTED = [SystemCallError, IOError, SocketError, Timeout::Error].freeze
      ERRORS = [500, 502, 503, 504].freeze
      SUCCESSFUL = [200, 206].freeze # of a GET whose HEAD is 200
      # What caches alone read. Of a 304 with a cookie, other fields may be personal.
      FOR_CACHES = %w[date age expires cache-control etag last-modified vary cache-groups surrogate-key xkey cache-tag].freeze
      CONDITIONS = %w[HTTP_IF_NONE_MATCH HTTP_IF_MODIFIED_SINCE HTTP_RANGE HTTP_IF_RANGE].freeze
      MOST_TAGS = 256
      UNVALIDATED_SECONDS = 600
      private_constant :UNVALIDATED_SECONDS
      private_constant :FOR_CACHES, :DISCONNECTED, :ERRORS, :SUCCESSFUL, :CONDITIONS, :MOST_TAGS

      # @param app [#call]
      # @param storage [Storage]
      # @param options [CacheOptions]
      # @param reply [Reply]
      def initialize(app, storage, options, reply)
        @app = app
        @storage = storage
        @options = options
        @reply = reply
      end

      # @param request [ClientRequest] GET or HEAD
      # @param found [Storage::Found]
      # @param reason [String] why the request is forwarded, for Cache-Status
      # @param fill [Boolean] whether the application gets no conditions of the client, which are evaluated
      #   here: a 304 would not fill the cache
      # @return [Fetched]
      def fetch(request, found, reason, fill: false)
        stored = found.stored
        validated = stored if stored&.validator? && Reuse.enough?(request, stored)
        own = validated || (fill && !request.identified? && ClientConditions::NAMES.any? { |name| request.env.key?(name) })
        requested_at = now
        request.preserve
        status, headers, body = own ? with_validators(request.env, validated) { @app.call(request.env) } : @app.call(request.env)
        received = Received.new(request, found, reason, status.to_i, HeaderFields.normalize(headers), body, requested_at, now, own)
        return instead_of_error(received) if ERRORS.include?(received.status) && stored && usable?(request, stored)
        return not_modified(received) if validated && received.status == 304

        take(received)
      rescue StandardError => error
        raise unless stored

        failed(request, found, reason, error)
      end

      # Forwards a request without storing the response.
      # @return [Array] Rack response
      def pass(request, reason)
        status, headers, body = @app.call(request.env)
        @reply.forwarded(request, status, HeaderFields.normalize(headers), body, "fwd=#{reason}")
      end

      # Forwards a request of an unsafe or unknown method, and invalidates what it changes. A response to POST
      # that is the new state of its URI may be stored, for later GET requests (RFC 9110 §9.3.3).
      # @return [Array] Rack response
      def change(request)
        found = @storage.find(request) if request.http_method == "POST"
        requested_at = now
        request.preserve
        status, headers, body = @app.call(request.env)
        received = Received.new(request, nil, "method", status.to_i, HeaderFields.normalize(headers), body, requested_at, now)
        found = nil unless found && Invalidation.representation?(request, received.status, received.fields)
        received.found = Invalidation.call(@storage, request, received.status, received.fields, found: found)
        received.found ? take(received).response : forwarded(received)
      end

      private

      # conditions: whether the client's own were not sent to the application
      Received = Struct.new(:request, :found, :reason, :status, :fields, :body, :requested_at, :received_at, :conditions) do
        # The client gets another body, so that an error of this one does not concern it.
        def close
          body.close if body.respond_to?(:close)
        rescue StandardError => error
          request.env["rack.errors"]&.puts("castellan: a body that the HTTP cache does not send could not be closed: " \
                                           "#{error.full_message(highlight: false)}")
        end

        # @return [Boolean] whether `to_ary` returns the whole body
        def whole? = body.respond_to?(:to_ary) && !LazyBody.in?(request.env)

        # A framework sends Set-Cookie for a new or changed session, but not for one that the application has only read.
        # @return [Boolean] whether the application has used the session of Rails, Rack or Roda
        def session?
          session = request.env["rack.session"]
          !session.nil? && (!session.respond_to?(:loaded?) || session.loaded? || nonce?(session))
        end

        # Rails' template for Content-Security-Policy sends the id of the session, for which it is not loaded.
        def nonce?(session)
          nonce = request.env["action_dispatch.content_security_policy_nonce"]
          !nonce.to_s.empty? && session.respond_to?(:id) && session.id.to_s == nonce
        end

        # @return [Boolean] whether fields without a meaning for caches may be personal
        def personal? = fields.key?("set-cookie") || session?
      end
      private_constant :Received

      def now
        @options.now
      end

      # Replaces the client's conditions, which are evaluated afterwards, by the stored validators. Changes
      # and restores the environment instead of copying it: outer middlewares read the application's changes.
      def with_validators(env, stored)
        before = CONDITIONS.to_h { |name| [name, env.delete(name)] }
        env["HTTP_IF_NONE_MATCH"] = stored.etag if stored&.etag
        env["HTTP_IF_MODIFIED_SINCE"] = stored.last_modified if stored && HTTPDate.parse(stored.last_modified)
        yield
      ensure
        before.each { |name, value| value ? env[name] = value : env.delete(name) }
      end

      def usable?(request, stored, disconnected: false)
        Reuse.instead_of_error?(request, stored, now, disconnected: disconnected)
      end

      def instead_of_error(received)
        received.close
        outcome = "fwd=#{received.reason}; fwd-status=#{received.status}"
        Fetched.new(@reply.stored(received.request, received.found.stored, now, outcome: outcome),
                    shared_failure(received.request, received.found, :failed))
      end

      def shared_failure(request, found, outcome)
        Shared.new(found.stored, found.names, Vary.signature(found.names, request.original), outcome)
      end

      def failed(request, found, reason, error)
        disconnected = DISCONNECTED.any? { |type| error.is_a?(type) }
        if usable?(request, found.stored, disconnected: disconnected)
          log(request, error)
          response = @reply.stored(request, found.stored, now, outcome: "fwd=#{reason}; detail=error")
          return Fetched.new(response, shared_failure(request, found, disconnected ? :disconnected : :failed))
        end
        raise error unless found.stored.strict? && disconnected

        log(request, error)
        Fetched.new(@reply.gateway_timeout(request, "disconnected"))
      end

      def log(request, error)
        request.env["rack.errors"]&.puts("castellan: the HTTP cache answered for the application, which failed: " \
                                         "#{error.full_message(highlight: false)}")
      end

      # RFC 9111 §4.3.4. A 304 with another validator does not validate the stored response, so the request is
      # sent again without conditions. One with a strong validator updates all responses that match both.
      def not_modified(received)
        stored = received.found.stored
        received.close
        unless Validators.same?(received.fields, stored)
          drop(received)
          return fetch(received.request, Storage::Found.new(nil, nil, received.found.seen), received.reason)
        end

        others(received).each { |found| freshen(received, found) if Validators.strong?(received.fields, found.stored) }
        updated, excluded = freshen(received, received.found)
        more = received.personal? ? received.fields.except("age", *HeaderFields::OF_CONTENT) : received.fields.slice(*excluded)
        response = @reply.stored(received.request, updated.stored, received.received_at, age: received.fields.key?("age"), more: more,
                                                                                         outcome: "fwd=#{received.reason}; fwd-status=304")
        Fetched.new(response, updated)
      end

      # @return [Array<Storage::Found>] the other stored responses that could have been chosen for the request
      def others(received) = received.found.all.select { |found| !found.equal?(received.found) && reusable?(received, found) }

      def reusable?(received, found) = Reuse.permitted?(received.request, found.stored)

      # @return [Array(Shared, Array<String>)] also the names of fields that are not stored
      def freshen(received, found)
        stored = found.stored
        received.fields["date"] = HTTPDate.format(received.received_at) unless valid_date?(received.fields)
        fields = updated_fields(received, stored)
        fields["age"] = received.fields["age"] if received.fields.key?("age")
        policy = policy(received, stored.status, fields)
        tags = policy.storable? ? tags(received.request, fields, received.requested_at) : nil
        fresh = policy.build(stored.content, tags: tags || [], head: stored.head?)
        return [share(received, policy, fresh, replaced: found), policy.excluded] if tags

        drop(received, found)
        [Shared.new(fresh, nil, nil, :refused), policy.excluded]
      end

      def updated_fields(received, stored)
        all = HeaderFields.updated(stored.fields, received.fields)
        return all unless received.personal?
        return all if @options.set_cookie == :explicit && stored.fields.key?("set-cookie")
        return all if policy(received, stored.status, all).excluded.include?("set-cookie")

        HeaderFields.updated(stored.fields, received.fields.slice(*FOR_CACHES, *@options.targeted_fields))
      end

      def take(received)
        received.fields["date"] = HTTPDate.format(received.received_at) unless valid_date?(received.fields)
        received.fields.delete("content-length") if received.status == 204 # RFC 9110 §8.6
        policy = policy(received, received.status, received.fields, session: received.session?)
        return head(received, policy) if received.request.head?
        return unstored(received, policy) unless policy.storable? && received.body.respond_to?(:each) && combinable?(received)

        known = size(received)
        return unstored(received, policy) if known && known > @options.max_body

        return empty(received) if received.status == 204

        received.whole? ? buffered(received) : streamed(received, policy)
      end

      # Servers close the body of a 204 without reading it, so a streamed one would not be stored.
      def empty(received)
        received.close
        received.body = []
        buffered(received)
      end

      # A part does not replace a whole response. The response to If-Range has few fields, so it is stored only
      # together with an earlier part (RFC 9110 §15.3.7).
      def combinable?(received)
        return true if received.status != 206

        stored = received.found.stored
        !received.conditions && received.reason != "bypass" && (stored.nil? || stored.incomplete?) &&
          (!received.request.original.key?("HTTP_IF_RANGE") || Parts.touch?(stored, received.fields))
      end

      def policy(received, status, fields, session: false)
        StoragePolicy.new(received.request, status, fields, @options, session: session, requested_at: received.requested_at,
                                                                      received_at: received.received_at)
      end

      def valid_date?(fields)
        HTTPDate.parse(HeaderFields.first(fields["date"]))
      end

      # @return [Integer, nil] bytes; nil if the size is unknown before the body is read
      def size(received)
        length = HeaderFields.first(received.fields["content-length"])
        return length.to_i if length&.match?(/\A\d+\z/)

        File.size?(received.body.to_path) if received.body.respond_to?(:to_path) && !received.body.respond_to?(:to_ary)
      end

      def unstored(received, policy)
        drop(received) unless received.status >= 500 || StoragePolicy::PARTIAL.include?(received.status)
        not_stored(received, policy)
      end

      # @return [Fetched]
      def not_stored(received, policy)
        Recording.current&.notify(:unstored, policy.refusal || "it is over max_body: or incomplete, has over #{MOST_TAGS} tags, " \
                                                               "was just purged, or the store failed")
        unmodified(received, policy) || Fetched.new(forwarded(received))
      end

      # @return [Fetched, nil] a 304 without the body
      def unmodified(received, policy)
        response = policy.build("") if received.conditions
        return unless response && dated?(received, response) && @reply.not_modified?(received.request.original, response)

        received.close
        Fetched.new(conditional(received, response), nil, received.status)
      end

      # If-Modified-Since is compared with the Date of a stored response (RFC 9111 §4.3.2), not with that of a new one.
      def dated?(received, response)
        original = received.request.original
        !response.last_modified.nil? || original.key?("HTTP_IF_NONE_MATCH") || !original.key?("HTTP_IF_MODIFIED_SINCE")
      end

      # Evaluates the conditions of the client, which the application did not see.
      def conditional(received, response, outcome = nil)
        own = received.fields.except("age", *response.fields.keys) # fields that are not stored, such as cookies, are this client's own
        outcome = "fwd=#{received.reason}#{outcome}"
        @reply.stored(received.request, response, received.received_at, age: received.fields.key?("age"), more: own, outcome: outcome,
                                                                        forwarded: received.status)
      end

      # A request with no-store does not change the store.
      def drop(received, found = received.found)
        @storage.drop(found) unless received.request.no_store?
      end

      def forwarded(received, stored: false)
        @reply.forwarded(received.request, received.status, received.fields, received.body, "fwd=#{received.reason}#{"; stored" if stored}")
      end

      def buffered(received)
        received.body = read(received)
        policy = policy(received, received.status, received.fields, session: received.session?) # which the body may have used
        # A long body is not copied.
        return not_stored(received, policy) if received.body.sum(&:bytesize) > @options.max_body || !policy.storable?

        content = joined(received.body)
        received.body = content.empty? ? [] : [content]
        complete?(received, content) ? after(received, policy, store(received, policy, content)) : not_stored(received, policy)
      end

      # @return [Fetched]
      def after(received, policy, shared)
        return not_stored(received, policy).tap { |fetched| fetched.shared = shared } unless shared&.shareable?
        return Fetched.new(forwarded(received, stored: true), shared) unless received.conditions && dated?(received, shared.stored)

        received.close
        Fetched.new(conditional(received, shared.stored, "; stored"), shared, received.status)
      end

      def joined(chunks)
        chunks.each_with_object(String.new) { |chunk, content| content << chunk.b }.freeze
      end

      # @return [Array<String>]
      def read(received)
        received.body.to_ary # which closes the body (Rack specification)
      rescue StandardError
        received.close
        raise
      end

      def streamed(received, policy)
        fetched = unmodified(received, policy) and return fetched

        length = size(received)
        received.fields["content-length"] ||= length.to_s if length && received.status == 200 # of a file; the copy has no path
        received.body = TeedBody.new(received.body, @options.max_body, length) do |content|
          # The body may have used the session while it was sent.
          later = policy(received, received.status, received.fields, session: received.session?)
          store(received, later, content.freeze) if later.storable? && complete?(received, content)
        end
        Fetched.new(forwarded(received))
      end

      # Incomplete responses are not stored (RFC 9111 §3.3), nor those of which the length is invalid.
      def complete?(received, content)
        return false if received.status == 206 && Parts.position(received.fields)[1] != content.bytesize
        return false if LiveStreams.failed?(received.request.env)

        length = received.fields["content-length"]
        length.nil? || (Array(length).size == 1 && size(received) == content.bytesize)
      end

      # @return [Shared, nil]
      def store(received, policy, content)
        received.fields["content-length"] ||= content.bytesize.to_s unless received.status == 204
        policy, content = combined(received, policy, content) || return if received.status == 206
        tags = tags(received.request, policy.fields, received.requested_at) or return
        share(received, policy, policy.build(content, tags: tags))
      end

      # @return [Array(StoragePolicy, String), nil] of the part together with the stored one, or of the part alone
      #   if that would be too long or may not be stored; nil if the part may not be stored alone
      def combined(received, policy, content)
        status, fields, whole = Parts.combined(received.found.stored, received.fields, content)
        together = policy(received, status, fields)
        return [together, whole] if together.storable? && whole.bytesize <= @options.max_body

        [policy, content] unless received.request.original.key?("HTTP_IF_RANGE")
      end

      def share(received, policy, stored, replaced: nil)
        request = received.request
        ttl = [stored.remaining(received.received_at), 0].max + [stored.while_revalidate, stored.if_error, kept(stored)].max
        outcome = @storage.write(request, stored, policy.vary, replaced || received.found, ttl: [ttl, 1].max, replaces: !replaced.nil?)
        Shared.new(stored, policy.vary, Vary.signature(policy.vary, request.original), outcome)
      end

      # Without a validator, a stale response serves only clients that accept one (max-stale, stale-if-error).
      def kept(stored)
        stored.validator? ? @options.keep : [@options.keep, UNVALIDATED_SECONDS].min
      end

      # A HEAD response updates the stored GET responses that match the request, or drops those with other
      # content (RFC 9111 §4.3.5). Without a validator it updates nothing: two contents may have the same length,
      # and a monitor that sends HEAD would keep the old one fresh for ever. If there is no stored response, it is
      # stored for later HEAD requests (RFC 9110 §9.3.2).
      def head(received, policy)
        matching = received.found.all.select { |found| !found.stored.head? && reusable?(received, found) }
        return head_alone(received, policy) if matching.empty? && received.reason != "bypass"

        matching = [] unless received.status == 200
        same, changed = matching.partition do |found|
          SUCCESSFUL.include?(found.stored.status) && Validators.same_content?(received.fields, found.stored)
        end
        same.each { |found| freshen(received, found) } if Validators.present?(received.fields) && !received.personal?
        changed.each { |found| drop(received, found) }
        not_stored(received, policy)
      end

      def head_alone(received, policy)
        return unstored(received, policy) unless policy.storable? && received.status != 206 # which is only for GET

        tags = tags(received.request, received.fields, received.requested_at)
        after(received, policy, tags && share(received, policy, policy.build("", tags: tags, head: true)))
      end

      # @return [Array, nil] nil if a tag was invalidated after the request, or if there are too many tags
      def tags(request, fields, requested_at)
        keys = SurrogateTags.keys(fields, request.origin)
        @storage.tags(keys, requested_at) if keys.size <= MOST_TAGS
      end
    end
  end
end
