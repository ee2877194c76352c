# frozen_string_literal: true

module Castellan
  module Profile
    class Page
      # Renders the page of one request.
      #
      #   ResultView.new(result, root: "/castellan", origin: "http://localhost:3000").to_s
      class ResultView < View
        template "result_page", "findings", "timeline", "queries", "caches", "memory", "flame", "request"

        MOST_ROWS = 25
        MOST_GROUPS = 100
        MEMORY_TABLES = { by_line: "By line", by_file: "By file", by_gem: "By gem", by_class: "By class" }.freeze
        DEPTHS = { "memory" => "bytes and objects by gem, file, line and class", "cpu" => "a flame graph of the processor's time",
                   "wall" => "a flame graph of elapsed time", "objects" => "a flame graph of allocations" }.freeze
        private_constant :MOST_ROWS, :MOST_GROUPS, :MEMORY_TABLES, :DEPTHS

        # @param result [Result]
        # @param origin [String] scheme and host of the application
        # @param others [Array<ResultSummary>] recent requests, for "Compare with"
        # @param shared [Boolean] whether signed links are available
        def initialize(result, origin:, others: [], shared: false, **options)
          super(**options)
          @shared = shared
          @result = result
          @origin = origin
          @others = others.select { |other| other.id != result.id && comparable?(result, other) }
        end

        def to_s = layout("#{duration(result.duration_ns)} #{name}", result_page)

        private

        attr_reader :result

        def name = block? ? "A block of code" : (result.endpoint || request_line(result))

        # {Profile.run} records a block without a request.
        def block? = result.method.nil?

        def headline = @headline ||= Headline.new(result)

        def finding_groups = @finding_groups ||= FindingGroup.all(result.findings)

        def query_groups = @query_groups ||= QueryGroup.all(result.queries)

        def drawn = @drawn ||= Timeline.new(result)

        def finding_number(index) = index && finding_groups.index { |group| group.indexes.include?(index) }&.succ

        def finding_link(index)
          number = finding_number(index) or return
          word = finding_groups[number - 1].repeats? ? "repeated" : "finding"
          tag(:a, "#{word} #{number}", class: "badge bad", href: "#finding-#{number}")
        end

        def group_link(fingerprint)
          index = query_groups.first(MOST_GROUPS).index { |group| group.fingerprint == fingerprint }
          index ? "#query-#{index + 1}" : "#queries"
        end

        def before = previous(result, @others.select { |other| other.at <= result.at }) || @others.last

        # In UTC; page.js converts the time to the browser's time zone.
        def choice(other)
          time = Time.at(other.at).utc
          text = "#{time.strftime("%H:%M:%S UTC")} #{other.endpoint || other.path}, #{duration(other.duration_ns)}, " \
                 "#{counted(other.queries, "query")}"
          tag(:option, text, value: other.id, data_at: timestamp(time), selected: other.id == before.id)
        end

        def objects_scope
          others = result.objects[:overlapping].to_i
          "process-wide, #{others.zero? ? "no other request ran" : "with #{counted(others, "other request")}"}"
        end

        def rows = result.rows

        def cache_outcomes = result.cache.map { |event| "#{event[:layer]} #{event[:outcome]}" }.tally

        # The bytes that were read or written, and the age of the oldest entry; "-" if the cache does not
        # report them.
        def bytes_of(events) = events.any? { |event| event[:bytes] } ? bytes(events.sum { |event| event[:bytes].to_i }) : "-"
        def oldest_of(events) = (age = events.filter_map { |event| event[:age] }.max) ? duration((age * 1_000_000_000).to_i) : "-"

        # Shortens the paths of gems and of Ruby: "activerecord-7.2.3/lib/active_record/base.rb:9".
        def short(path) = path.to_s.sub(%r{\A/.*/gems/(?=[^/]+-\d[^/]*/)}, "").sub(%r{\A/.*/ruby/(?=\d+\.\d+\.\d+/)}, "ruby-")

        def deeper(depth)
          return Markup.new("run it with #{tag(:code, "Castellan::Profile.run(depth: \"#{depth}\")")}") if block?

          parameter, header = ["?profile=#{depth}", "Castellan-Profile: #{depth}"].map { |text| tag(:code, text) }
          Markup.new("repeat the request with #{parameter} or the header #{header}")
        end

        def curl(depth = nil) = Curl.new(result, origin: @origin, depth: depth)

        def flame_url
          profile = URI.encode_www_form_component(result_url(result.id, "flame.json"))
          "#{url("/speedscope/index.html")}#profileURL=#{profile}&title=#{ERB::Util.url_encode(name)}&view=left-heavy"
        end

        def flame_frame = tag(:iframe, "", class: "flame", title: "Flame graph", src: flame_url, data_flame: true)
      end
    end
  end
end
