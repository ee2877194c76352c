# frozen_string_literal: true

module Castellan
  module Profile
    # Formats a profile as a Server-Timing header (W3C Server Timing) for browser developer tools.
    #
    #   ServerTiming.of(parts, queries: 52, repeated: 1, looks: [[:document, :miss]])
    #   # => 'db;dur=12.3;desc="52 queries", cache;dur=0.1;desc="document miss", …, total;dur=43.4'
    #
    # The header covers the time until the headers were sent; `id:` adds `profile;desc="…"`, the id of the
    # page /castellan/requests/…. The header has at most LONGEST bytes of visible ASCII together with the
    # application's own entries; entries that do not fit are left out.
    #
    # The figures are for the authorised client only, so Cache-Control prevents shared caches from storing
    # this header (RFC 9111, 5.2.2.7: `private` with field names; caches without support for names treat the
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

      module_function

      # @param parts [Hash] see {Result#parts}
      # @param total_ns [Integer]
      # @param queries [Integer]
      # @param repeated [Integer] number of statements that were sent more than once, ignoring their values
      # @param looks [Array<Array>] pairs of cache layer and outcome
      # @param id [String, nil] id of the profile
      # @param room [Integer] maximal size in bytes
      # @return [String]
      def of(parts, total_ns:, queries:, repeated: 0, looks: [], id: nil, room: LONGEST)
        entries = [entry("db", parts[:sql_ns], database(queries, repeated))]
        entries << entry("render", parts[:render_ns]) if parts[:render_ns].positive?
        entries << entry("cache", parts[:cache_ns], answers(looks)) if looks.any?
        entries.push(entry("gc", parts[:gc_ns]), entry("app", parts[:outside_ns]), entry("total", total_ns))
        entries << %(profile;desc="#{id}") if id
        entries.select { |one| one.bytesize <= room && room -= one.bytesize + BETWEEN.bytesize }.join(BETWEEN)
      end

      # @param headers [Hash] response headers
      # @return [Integer] bytes left for this header
      def room(headers)
        said = said(headers, name(headers, HEADER))
        LONGEST - said.sum { |one| one.to_s.bytesize + BETWEEN.bytesize }
      end

      # @param headers [Hash] response headers; not modified
      # @param text [String] may be empty
      # @return [Hash] headers with Server-Timing and `private`, appended to the application's own values
      def added(headers, text)
        return headers if text.empty?

        more = appended(headers, HEADER, text)
        directives = said(headers, name(headers, CACHE_CONTROL)).join(", ").gsub(QUOTED, '""')
        more.update(appended(headers, CACHE_CONTROL, PRIVATE)) unless UNSHARED.match?(directives)
        headers.merge(more)
      end

      def appended(headers, header, text)
        key = name(headers, header)
        { key => [*said(headers, key), text].join(BETWEEN) }
      end
      private_class_method :appended

      def name(headers, header)
        return header if headers.key?(header)

        headers.each_key { |name| return name if name.to_s.casecmp(header)&.zero? }
        header
      end
      private_class_method :name

      def said(headers, key) = Array(headers[key]).reject { |one| one.to_s.empty? }
      private_class_method :said

      def database(queries, repeated)
        text = queries == 1 ? "1 query" : "#{queries} queries"
        repeated.zero? ? text : "#{text}, #{repeated} repeated"
      end
      private_class_method :database

      # Lists each pair of layer and outcome once.
      def answers(looks)
        different = looks.map { |layer, outcome| "#{layer} #{outcome}" }.uniq
        told = different.first(MOST_LOOKS)
        different.size > told.size ? "#{told.join(", ")} and #{different.size - told.size} more" : told.join(", ")
      end
      private_class_method :answers

      def entry(name, duration_ns, description = nil)
        text = "#{name};dur=#{(duration_ns / 1e6).round(2)}"
        description ? %(#{text};desc="#{description.gsub(/[^ -~]|["\\]/, "")[0, 120]}") : text
      end
      private_class_method :entry
    end
  end
end
