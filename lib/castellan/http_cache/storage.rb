# frozen_string_literal: true

require "securerandom"
require "zlib"

module Castellan
  class HTTPCache
    # Stores responses in a {Store}, by URI and by the request fields that they vary on.
    #
    #   found = storage.find(request)   # found.stored, found.reason
    #   storage.write(request, stored, names, found)
    #   storage.invalidate([request.key])
    #
    # A URI has one entry, which is one of three: its only response; an *index* with the Vary fields of its
    # responses and the random part of their keys; or, for some minutes after an invalidation, a *mark*. The
    # random part of a mark is the *generation* of its replacement, so that a response that was requested
    # before the invalidation is not stored after it. Each tag has an entry with a random value; a response is
    # valid as long as its tags have the values that it was stored with.
    class Storage
      # The Vary fields of a URI's responses, and the random part of their keys.
      Index = Struct.new(:token, :lists)
      # stored: the response or nil; place: its key; seen: the entry of the URI; reason: for `fwd` in
      # Cache-Status; names: the request fields that the response depends on, or, without one, that any response
      # of the URI depends on; others: a Found for each further response that matches the request
      Found = Struct.new(:stored, :place, :seen, :reason, :names, :others) do
        # @return [Array<Found>] all responses that match the request, the preferred one last
        def all = stored ? [*others, self] : []
      end

      INDEX = "CHI1"
      MARK = "CHX1"
      MARK_SECONDS = 300
      LOST = "#{MARK}lost".freeze # in place of an entry whose invalidation is lost
      GENERATION = /\A\h{16}\z/
      INDEX_SECONDS = 7 * 86_400
      MOST_LISTS = 8 # different Vary fields of one URI
      REMEMBERED = 512 # parsed responses in memory
      REMEMBERED_BYTESIZE = 65_536
      TAG = "castellan:http:1:tag:"
      VARIANT = "castellan:http:1:variant:"
      TRACE = "castellan:http:1:invalidated:"
      LONGEST_PLACE = 200 # bytes; longer ones are digested
      LOCKS = 16
      NONE = [].freeze
      private_constant :LOCKS, :NONE, :LOST, :GENERATION
      private_constant :Index, :VARIANT, :TRACE, :LONGEST_PLACE
      private_constant :INDEX, :MARK, :MARK_SECONDS, :INDEX_SECONDS, :MOST_LISTS, :REMEMBERED, :REMEMBERED_BYTESIZE, :TAG

      # @param name [String] surrogate key
      # @param origin [String] of a cache group (RFC 9875 §2.1); empty for surrogate keys
      # @return [String] key of the tag in the store
      def self.tag_key(name, origin = "")
        Cache::Key.for([TAG, origin, name])
      end

      # @param store [Object] see {Store}
      # @param log [#call, nil] called with one line per outage
      # @param clock [#now]
      def initialize(store, log: nil, clock: Clock)
        @store = Store::FailSafe.new(store, log: log, name: "Castellan::HTTPCache store:")
        @shared = !store.is_a?(Store::MemoryStore) # also one without leases, such as Solid Cache
        @clock = clock
        @lost = LostInvalidations.new(@store, clock: clock)
        @remembered = BoundedCache.new(limit: REMEMBERED)
        @locks = Array.new(LOCKS) { Mutex.new }.freeze
      end

      # @param seconds [Numeric] duration of a lease
      # @return [Leases, nil] nil if the store does not share leases with other processes
      def leases(seconds)
        Leases.new(@store, seconds: seconds) if @store.shares_leases? && seconds.positive?
      end

      # @param request [ClientRequest]
      # @return [Found]
      def find(request)
        return Found.new(nil, nil, LOST, "uri-miss") if @lost.retry_and_include?(request.key)

        bytes, index = @remembered[request.key]&.first
        places = index.is_a?(Index) ? places(request, index) : NONE
        values = @store.read_multi([request.key, *places]) # one round trip, if the index has not changed
        seen = values[request.key]
        return Found.new(nil, nil, seen, "uri-miss") if seen.nil? || seen.start_with?(MARK)
        return find_variant(request, seen, bytes, places, values) if seen.start_with?(INDEX)

        stored = request.context.empty? ? valid(load(request.key, seen)) : nil
        Found.new(stored, stored && request.key, seen, "uri-miss", NONE)
      end

      # @param request [ClientRequest]
      # @param stored [StoredResponse]
      # @param names [Array<String>] the fields in Vary
      # @param found [Found] the result of {#find} before the response was requested
      # @param ttl [Numeric] seconds
      # @param replaces [Boolean] whether the response is an update of the found one. A response without Vary
      #   always replaces the found one, because {#find} would prefer that one
      # @return [Symbol] :stored; :outdated if its URI was invalidated after the request; :refused
      def write(request, stored, names, found, ttl:, replaces: false)
        generation = generation(found.seen)
        bytes = stored.dump(request.key, generation) or return :refused
        exclusively(request.key) do
          next :outdated if @lost.include?(request.key)

          now_there, before = @store.read_multi(marked(request.key)).values_at(request.key, trace(request.key))
          next :outdated if now_there && generation(now_there) != generation

          written = if names.empty? && request.context.empty? && !now_there&.start_with?(INDEX)
                      @store.write_multi({ request.key => bytes }, ttl: ttl).any?
                    else
                      replaced = found if replaces || names.empty?
                      write_variant(request, stored, names, now_there, ttl, replaced)
                    end
          next :refused unless written

          overwritten?(request.key, before) ? :outdated : :stored
        end
      end

      # @param seen [String, nil] the entry of a URI
      # @return [String, nil] differs before and after an invalidation
      def generation(seen)
        if seen.nil? then nil
        elsif seen.start_with?(StoredResponse::MAGIC) then StoredResponse.generation(seen)
        else
          token = seen[MARK.size, 16]
          token if token&.match?(GENERATION) || seen == LOST
        end
      end

      # @param stored [StoredResponse, nil]
      # @return [StoredResponse, nil] nil if the response or one of its tags was invalidated
      def valid(stored)
        return if stored.nil? || @lost.cover?(stored)
        return stored if stored.tags.empty?

        values = @store.read_multi(stored.tags.map(&:first))
        stored if stored.tags.all? { |key, value| values[key] == value && !@lost.include?(key) }
      end

      # Deletes a response that is no longer valid.
      # @param found [Found]
      def drop(found)
        return if found.place.nil?
        return @store.delete_multi([found.place]) unless found.seen.start_with?(StoredResponse::MAGIC)

        # Another response or a mark may have replaced it.
        exclusively(found.place) do
          @store.delete_multi([found.place]) if @store.read_multi([found.place])[found.place] == found.seen
        end
      end

      # @param keys [Array<String>] of URIs
      # @return [Boolean] false if the store failed; this process then retries before its next read
      def invalidate(keys)
        keys.map do |key|
          exclusively(key) { mark(key) }
        end.all?
      end

      # Invalidates a URI before the response to an unsafe request is stored for it.
      # @param key [String] of the URI
      # @param found [Found, nil] the result of {#find} before the request; nil if the response is not stored
      # @return [Found, nil] for {#write}; nil if the URI was invalidated since `found`, or if the store failed
      def renew(key, found)
        exclusively(key) do
          before = @store.read_multi([key])[key] if found
          entry = MARK + SecureRandom.hex(8)
          next unless mark(key, entry) && found && generation(before) == generation(found.seen)

          Found.new(nil, nil, entry, "method")
        end
      end

      # @param keys [Array<String>] of {tag_key}
      # @return [Boolean] see {invalidate}
      def invalidate_tags(keys)
        @lost.write(keys) { "#{SecureRandom.hex(8)}:#{@clock.now.to_f}" }
      end

      # @param keys [Array<String>] of {tag_key}
      # @param requested_at [Float] seconds since 1970
      # @return [Array<(String, String)>, nil] the tags with their values; nil if one was invalidated since
      #   `requested_at` or cannot be read
      def tags(keys, requested_at)
        return [] if keys.empty?
        return if keys.any? { |key| @lost.include?(key) }

        values = @store.read_multi(keys)
        missing = keys - values.keys
        if missing.any?
          @store.write_multi(missing.to_h { |key| [key, "#{SecureRandom.hex(8)}:0"] }, if_absent: true)
          values = @store.read_multi(keys)
        end
        return unless keys.all? { |key| values[key] && values[key].split(":").last.to_f < requested_at }

        keys.map { |key| [key, values[key]] }
      end

      private

      # @return [Boolean] false if the store failed
      def mark(key, entry = nil)
        @lost.write(marked(key), ttl: MARK_SECONDS) { entry || (MARK + SecureRandom.hex(8)) }
      end

      # @return [Array<String>] in the order in which {overwritten?} needs them
      def marked(key) = @shared ? [trace(key), key] : [key]

      # @return [String] key of a copy of the mark, which no response overwrites
      def trace(key) = "#{TRACE}#{key}"

      # Another process may have invalidated the URI between the last check and the write, which then overwrote its mark.
      def overwritten?(key, before)
        return false if !@shared || @store.read_multi([trace(key)])[trace(key)] == before

        mark(key)
        true
      end

      # Keeps invalidations of this process out of the gap between reading a URI's entry and writing it.
      def exclusively(key, &block)
        @locks[key.hash % LOCKS].synchronize(&block)
      end

      def places(request, index)
        index.lists.map { |names| place(request, index, names) }
      end

      def find_variant(request, seen, bytes, places, values)
        index = index(request.key, seen)
        values = @store.read_multi(places = places(request, index)) unless seen == bytes
        found = places.filter_map do |key|
          stored = valid(load(key, values[key])) and Found.new(stored, key, seen, nil, index.lists[places.index(key)])
        end
        return found.first || Found.new(nil, nil, seen, miss(index, values, places), index.lists.flatten.uniq) if found.size < 2

        preferred = found.max_by { |one| preference(one.stored) }
        preferred.others = found.reject { |one| one.equal?(preferred) }
        preferred
      end

      # RFC 9211 §2.2: "vary-miss" if Vary excludes all stored responses; "miss" if the one that matches was
      # invalidated, because others may be stored.
      def miss(index, values, places)
        return "uri-miss" if index.lists.all?(&:empty?)

        places.any? { |key| values.key?(key) } ? "miss" : "vary-miss"
      end

      # Prefers complete responses, the newest, and one with Vary to one without: applications forget Vary in
      # the response to a request without preferences, which then matches every request (RFC 9111 §4.1).
      def preference(stored)
        [stored.incomplete? ? 0 : 1, stored.fields.key?("vary") ? 1 : 0, stored.date, stored.received_at]
      end

      def write_variant(request, stored, names, now_there, ttl, replaced)
        only = load(request.key, now_there) if now_there&.start_with?(StoredResponse::MAGIC) && replaced&.place != request.key
        bytes_of_index = index_with(names, only, now_there)
        index = index(request.key, bytes_of_index)
        key = place(request, index, names)
        put(only, place(request, index, [], context: ""), ttl) if only
        drop(replaced) if replaced && replaced.place != key && replaced.place != request.key
        return false if put(stored, key, ttl).empty?

        @store.write_multi({ request.key => bytes_of_index }, ttl: [ttl, INDEX_SECONDS].max) unless bytes_of_index == now_there
        true
      end

      def put(stored, key, ttl)
        @store.write_multi({ key => stored.dump(key) }, ttl: ttl)
      end

      # Keeps the only response available when the first one with another Vary field or context arrives.
      def index_with(names, only, now_there)
        indexed = now_there&.start_with?(INDEX)
        known = indexed ? parse_index(now_there).lists : [([] if only)].compact
        return now_there if indexed && known.include?(names)

        token = now_there[INDEX.size, 16] if indexed
        token ||= generation(now_there) || "-#{SecureRandom.hex(8)[1..]}"
        [INDEX + token, *[names, *known].uniq.first(MOST_LISTS).map { |list| list.join(" ") }].join("\n").b
      end

      def parse_index(bytes)
        Index.new(bytes[INDEX.size, 16], bytes.split("\n", -1).drop(1).map(&:split))
      end

      # The checksum excludes the index of another URI, which a store may return. Lengths separate the values.
      def place(request, index, names, context: request.context)
        place = "#{VARIANT}#{index.token}:#{Zlib.crc32(request.key)}:#{names.join(",")}:#{context.bytesize}:#{context}"
        Vary.signature(names, request.original).each do |value|
          place << (value ? ":#{value.bytesize}:#{value}" : ":-")
        end
        place.bytesize > LONGEST_PLACE ? Cache::Key.for([place]) : place
      end

      def index(key, bytes)
        remembered(key, bytes) { parse_index(bytes) }
      end

      def load(key, bytes)
        remembered(key, bytes) { StoredResponse.load(bytes, key) } if bytes
      end

      # An outdated pair is harmless, because the bytes are compared.
      def remembered(key, bytes)
        known, parsed = @remembered[key]&.first
        return parsed if known == bytes

        parsed = yield
        @remembered.fetch(key) { [nil] }[0] = [bytes, parsed].freeze if parsed && bytes.bytesize <= REMEMBERED_BYTESIZE
        parsed
      end
    end
  end
end
