# frozen_string_literal: true

module Castellan
  module Profile
    # A profile as a Server-Timing header (W3C Server Timing), for the developer tools of browsers.
    #
    #   ServerTiming.of(parts, queries: 52, repeated: 1, looks: [[:document, :miss]])
    #   # => 'db;dur=12.3;desc="52 queries, 1 repeated", cache;dur=0.1;desc="document miss", gc;dur=0, app;dur=31.0, total;dur=43.4'
    #
    # It says what was known when the headers left and, with `id:`, where the rest will be: `profile;desc="…"`, of /castellan/requests/….
    # Pure functions; at most LONGEST bytes of visible ASCII, with what the application said in this header: entries that find no room
    # beside it are left out.
    #
    # It is for who was authorised, so a shared cache that may store the response is told not to store or give out this header
    # (RFC 9111, 5.2.2.7: `private` with field names; caches that do not know names take the whole for private).
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

      # @param parts [Hash] of a {Result}
      # @param total_ns [Integer]
      # @param queries [Integer]
      # @param repeated [Integer] how many statements were sent more than once but for their values
      # @param looks [Array<Array>] layer and outcome
      # @param id [String, nil] of the profile
      # @param room [Integer] bytes
      # @return [String]
      def of(parts, total_ns:, queries:, repeated: 0, looks: [], id: nil, room: LONGEST)
        entries = [entry("db", parts[:sql_ns], database(queries, repeated))]
        entries << entry("render", parts[:render_ns]) if parts[:render_ns].positive?
        entries << entry("cache", parts[:cache_ns], answers(looks)) if looks.any?
        entries.push(entry("gc", parts[:gc_ns]), entry("app", parts[:outside_ns]), entry("total", total_ns))
        entries << %(profile;desc="#{id}") if id
        entries.select { |one| one.bytesize <= room && room -= one.bytesize + BETWEEN.bytesize }.join(BETWEEN)
      end

      # @param headers [Hash] of a response
      # @return [Integer] bytes that are left
      def room(headers)
        said = said(headers, name(headers, HEADER))
        LONGEST - said.sum { |one| one.to_s.bytesize + BETWEEN.bytesize }
      end

      # @param headers [Hash] of a response, which is left as it is
      # @param text [String] may be empty
      # @return [Hash] with the header, which is in no shared cache; what the application said under the same names stays
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

      # Of several looks into one layer with one outcome, one is told.
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
