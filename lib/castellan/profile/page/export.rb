# frozen_string_literal: true

require "json"

module Castellan
  module Profile
    class Page
      # Renders one request as a standalone HTML file that contains its styles, scripts and flame graph.
      #
      #   File.write("profile.html", Castellan::Profile::Page::Export.new(result).to_s)
      #
      # Its Content-Security-Policy allows scripts and styles by hash. A policy in a meta element cannot
      # forbid framing, so a script hides the page inside a frame; a server should also send {#headers}.
      # speedscope runs in a srcdoc frame and receives the profile as a paste event, because a local file may
      # not load another one.
      class Export < ResultView
        HAND_OVER = <<~JS
          addEventListener("load", () => {
            const pasted = new DataTransfer();
            pasted.setData("text/plain", document.getElementById("profile").textContent);
            document.dispatchEvent(new ClipboardEvent("paste", { clipboardData: pasted, bubbles: true, cancelable: true }));
          });
        JS
        UNFRAMED = "if (self !== top) document.documentElement.hidden = true;"
        private_constant :HAND_OVER, :UNFRAMED

        # @param result [Result]
        # @param origin [String, nil] for the curl command; by default the recorded Host, or localhost
        def initialize(result, origin: nil)
          super(result, origin: origin || "http://#{result.headers["host"] || "localhost"}", root: "")
        end

        # @return [Hash{String => String}] response headers for a server that sends the file
        def headers = Policy.headers(policy).merge("content-type" => "text/html; charset=utf-8")

        # @return [String] the Content-Security-Policy of the file
        def policy
          flame = !result.flame.nil?
          Policy.of_file(scripts: [UNFRAMED, text("theme.js"), text("page.js"), *([speedscope, HAND_OVER] if flame)],
                         styles: [text("page.css"), *(speedscope_style if flame)], speedscope: flame)
        end

        private

        def export? = true

        def head
          metas = { http_equiv: "Content-Security-Policy", content: policy }, { name: "referrer", content: "no-referrer" }
          style = tag(:style, Markup.new(text("page.css")))
          Markup.new([*metas.map { |meta| tag(:meta, **meta) }, style, inline(UNFRAMED), inline(text("theme.js"))].join("\n"))
        end

        def foot = inline(text("page.js"))

        def flame_frame = tag(:iframe, "", class: "flame", title: "Flame graph", srcdoc: flame_document)

        def flame_document
          profile = JSON.generate(result.flame).gsub("<", "\\u003c")
          html = <<~HTML
            <!DOCTYPE html><html><head><meta charset="utf-8"><title>speedscope</title><style>#{speedscope_style}</style></head>
            <body><script type="application/json" id="profile">#{profile}</script><script>#{speedscope}</script><script>#{HAND_OVER}</script></body></html>
          HTML
          Markup.new(ERB::Util.html_escape(html)) # do not reformat: the policy contains the hashes of the scripts
        end

        def inline(text) = tag(:script, Markup.new(text))

        def text(name) = Assets.find(name).text

        def speedscope = @speedscope ||= Assets.speedscope(".js").text

        # Without speedscope's font; the browser uses its own monospaced font.
        def speedscope_style = @speedscope_style ||= Assets.speedscope(".css").text.gsub(/@font-face\s*\{[^}]*\}/, "")
      end
    end
  end
end
