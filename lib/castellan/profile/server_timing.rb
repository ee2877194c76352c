# frozen_string_literal: true

module Castellan
  module Profile
    # Formats a profile as the header Server-Timing (W3C) for the developer tools of browsers.
    #
    #   ServerTiming.of(parts, queries: 52, repeated: 1, looks: [[:document, :miss]])
    #   # => 'db;dur=12.3;desc="52 queries, 1 statement repeated", cache;dur=0.1;desc="document miss", …, total;dur=43.4'
    #
    # Covers the time until the headers are sent. `id:` adds `profile;desc="…"`, the id in
    # /castellan/requests/…. Entries that do not fit into LONGEST bytes, together with the application's own,
    # are left out.
    #
    # The figures are only for the authorized client, so Cache-Control forbids shared caches to store this
    # header (RFC 9111, 5.2.2.7: `private` with field names; caches that do not support names treat the whole
    # response as private).
    module ServerTiming
      HEADER = "server-timing"
      LONGEST = 1_000
      MOST_LOOKS = 6
      BETWEEN = ", "
      CACHE_CONTROL = "cache-control"
      PRIVATE = %(private="#{HEADER}").freeze
      UNSHARED = /(?:\A|,)\s*(?:private|no-store)\s*(?:,|\z)/i
      QUOTED = /"(?:[^"\\]|\\.)*"/
      private_constant :BETWEEN, :CACHE_CONTROL, :PRIVATE, :UNSHARED, :QUOTED

      class << self
        # @param parts [Hash] see {Result#parts}
        # @param total_ns [Integer]
        # @param queries [Integer]
        # @param repeated [Integer] the number of statements that were sent more than once, with any values
        # @param looks [Array<Array>] pairs of cache layer and outcome
        # @param id [String, nil] the id of the profile
        # @param room [Integer] the maximum size in bytes
        # @return [String]
        def of(parts, total_ns:, queries:, repeated: 0, looks: [], id: nil, room: LONGEST)
          database = Figures.counted(queries, "query")
          database += ", #{Figures.counted(repeated, "statement")} repeated" if repeated.positive?
          entries = [entry("db", parts[:sql_ns], database), (entry("render", parts[:render_ns]) if parts[:render_ns].positive?),
                     (entry("cache", parts[:cache_ns], outcomes(looks)) if looks.any?), entry("gc", parts[:gc_ns]),
                     entry("app", parts[:outside_ns]), entry("total", total_ns), (%(profile;desc="#{id}") if id)].compact
          entries.select { |one| one.bytesize <= room && room -= one.bytesize + BETWEEN.bytesize }.join(BETWEEN)
        end

        # @param headers [Hash] response headers
        # @return [Integer] the bytes that are left for this header
        def room(headers) = LONGEST - values(headers, HEADER).sum { |one| one.to_s.bytesize + BETWEEN.bytesize }

        # @param headers [Hash] response headers; not modified
        # @param text [String] may be empty
        # @return [Hash] the headers with Server-Timing and `private`, after the application's own values
        def added(headers, text)
          return headers if text.empty?

          more = appended(headers, HEADER, text)
          directives = values(headers, CACHE_CONTROL).join(", ").gsub(QUOTED, '""')
          more.update(appended(headers, CACHE_CONTROL, PRIVATE)) unless UNSHARED.match?(directives)
          headers.merge(more)
        end

        private

        def appended(headers, header, text) = { name(headers, header) => [*values(headers, header), text].join(BETWEEN) }

        # The name of the header as the application writes it.
        def name(headers, header)
          headers.key?(header) ? header : headers.each_key.find { |name| name.to_s.casecmp?(header) } || header
        end

        def values(headers, header) = Array(headers[name(headers, header)]).reject { |one| one.to_s.empty? }

        def outcomes(looks)
          all = looks.map { |layer, outcome| "#{layer} #{outcome}" }.uniq
          listed = all.first(MOST_LOOKS).join(", ")
          all.size > MOST_LOOKS ? "#{listed} and #{all.size - MOST_LOOKS} more" : listed
        end

        def entry(name, duration_ns, description = nil)
          text = "#{name};dur=#{(duration_ns / 1e6).round(2)}"
          description ? %(#{text};desc="#{description.gsub(/[^ -~]|["\\]/, "")[0, 120]}") : text
        end
      end
    end
  end
end
