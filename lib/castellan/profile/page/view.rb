# frozen_string_literal: true

require "uri"

module Castellan
  module Profile
    class Page
      # Base class of the views, with templates, the layout, links and small drawings.
      #
      # {HtmlTemplate} escapes inserted values. Create HTML only with templates or {#tag}.
      #
      #   class HelloView < View
      #     template "hello"          # hello.html.erb, as the method `hello`
      #
      #     def to_s = layout("Hello", hello)
      #   end
      #   HelloView.new(root: "/castellan").to_s # => "<!DOCTYPE html>…"
      class View
        include Figures

        # @param names [Array<String>] template files in this folder, without ".html.erb"
        # @param takes [String] the parameters of the generated methods
        def self.template(*names, takes: "")
          names.each do |name|
            path = File.join(__dir__, "#{name}.html.erb")
            source = HtmlTemplate.new(File.read(path, encoding: "UTF-8")).src
            # ERB#def_method would not find the constants of the view.
            class_eval("def #{name}_source(#{takes})\n#{source}\nend", path, -1) # rubocop:disable Style/EvalWithLocation
            define_method(name) { |*arguments| Markup.new(send("#{name}_source", *arguments)) }
            private name, "#{name}_source"
          end
        end

        template "layout", takes: "title, content"
        template "missing_page", takes: "text"
        template "lanes", takes: "timeline"

        # @param root [String] the path of the page, including the mount point
        def initialize(root:)
          @root = root
        end

        # @param text [String]
        # @return [String] the page for status 404
        def missing(text) = layout("Not there", missing_page(text))

        private

        attr_reader :root

        # The content of <head>. An export inlines the files instead.
        def head
          link = tag(:link, rel: "stylesheet", href: "#{root}/assets/page.css")
          icon = tag(:link, rel: "icon", type: "image/svg+xml", href: "#{root}/assets/icon.svg")
          Markup.new([icon, link, script("theme.js"), script("page.js", defer: true)].join)
        end

        def foot = nil

        # Requests of another endpoint or status do other work, so they are not suggested for comparison.
        def comparable?(one, other) = one.endpoint == other.endpoint && one.status == other.status

        # @param earlier [Array<ResultSummary>] newest first
        # @return [ResultSummary, nil] the latest of the same endpoint and status, if possible of the same
        #   depth
        def previous(one, earlier)
          alike = earlier.select { |other| comparable?(one, other) }
          alike.find { |other| other.depth == one.depth } || alike.first
        end

        # An export has no links to other pages.
        def export? = false

        def script(name, **attributes) = tag(:script, "", src: "#{root}/assets/#{name}", **attributes)

        # @param content [Object, nil] nil for a void element
        def tag(name, content = nil, **attributes)
          Markup.new("<#{name}#{attributes(**attributes)}>#{"#{Markup.of(content)}</#{name}>" unless content.nil?}")
        end

        # @return [Markup] " open class=\"wide\""; nil and false are omitted
        def attributes(**pairs)
          written = pairs.filter_map do |name, value|
            next unless value

            value == true ? " #{dashed(name)}" : " #{dashed(name)}=\"#{Markup.of(value)}\""
          end
          Markup.new(written.join)
        end

        def dashed(name) = name.to_s.tr("_", "-")

        def url(path = "", **query)
          query = query.reject { |_, value| value.nil? || value.to_s.empty? }
          "#{root}#{path}#{"?#{URI.encode_www_form(query)}" if query.any?}"
        end

        def result_url(id, format = nil) = url("/requests/#{URI.encode_www_form_component(id)}#{format && ".#{format}"}")

        # Draws a bar as SVG, because the policy forbids inline styles.
        def bar(part, whole, kind = "sql")
          width = whole.to_f.positive? ? (100.0 * part.to_f / whole).clamp(0, 100).round(2) : 0
          rect = tag(:rect, "", width: width, height: 4)
          tag(:svg, rect, class: "bar #{kind}", viewBox: "0 0 100 4", preserveAspectRatio: "none", aria_hidden: "true")
        end

        def status_class(status)
          case status
          when 100..399 then "good"
          when 400..499 then "warn"
          else "bad"
          end
        end

        def status_badge(status)
          title = "an exception, or a connection that was taken over" unless status
          tag(:span, status || "none", class: "badge #{status_class(status)}", title: title)
        end

        def unanswered(result) = result.exception ? "nothing was answered" : "the connection was taken over"

        def depth_badge(depth) = depth == "sql" ? nil : tag(:span, depth, class: "badge depth")

        # @return [Array<(Float, String, String)>] for each tick the percentage, the text and its alignment
        def ticks(timeline)
          last = timeline.ticks.size - 1
          timeline.ticks.each_with_index.map do |(place, at), index|
            [place / 10, duration(at), { 0 => "start", last => "end" }.fetch(index, "middle")]
          end
        end

        def mark_title(mark)
          many = mark.count > 1 ? "#{count(mark.count)} close together, " : ""
          "#{many}#{duration(mark.duration_ns)}, #{duration(mark.at_ns)} after the start"
        end

        def finding_link(index) = index && tag(:span, "finding", class: "badge bad")

        def logo
          path = tag(:path, "", fill: "currentColor", d: "M3 21V4h3v3h3V4h6v3h3V4h3v17h-6v-5a3 3 0 0 0-6 0v5z")
          tag(:svg, path, viewBox: "0 0 24 24", width: 20, height: 20, aria_hidden: "true")
        end

        # In UTC; page.js converts it to the browser's time zone.
        def moment(seconds)
          time = Time.at(seconds).utc
          tag(:time, time.strftime("%Y-%m-%d %H:%M:%S UTC"), datetime: timestamp(time))
        end

        def timestamp(time) = time.strftime("%Y-%m-%dT%H:%M:%S.%LZ")

        def request_line(result)
          "#{result.method} #{result.path}#{"?#{result.query}" unless result.query.to_s.empty?}"
        end
      end
    end
  end
end
