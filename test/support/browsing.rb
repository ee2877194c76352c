# frozen_string_literal: true

require "ferrum"

module Castellan
  # Pages in headless Chromium: a context of its own for each, with what it refused, asked and said.
  #
  #   include Castellan::Browsing
  #   browse(url, width: 360, scheme: "dark") do |page|
  #     await(page, "document.title === 'Ready'")
  #     assert_empty page.evaluate(TOO_FAINT)
  #   end
  #
  # One browser serves a test process. `violations` are of the Content-Security-Policy, frames included.
  module Browsing
    # For every element with text of its own: the contrast of a colour with what is behind it, where that is too low (WCAG 2.2: 1.4.3
    # asks for 4.5 of text, 1.4.11 for 3 of what shows that something can be used).
    # @param selector [String] of the elements
    # @param color [String] the property
    # @param least [Numeric]
    # @return [String] JavaScript that gives texts and contrasts
    def self.faint(selector, color:, least:)
      <<~JS
        (() => {
          const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
          const parts = (color) => {
            canvas.clearRect(0, 0, 1, 1);
            canvas.fillStyle = color;
            canvas.fillRect(0, 0, 1, 1);
            return [...canvas.getImageData(0, 0, 1, 1).data];
          };
          const channel = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
          const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
          const behind = (element) => {
            for (; element; element = element.parentElement) {
              const color = parts(getComputedStyle(element).backgroundColor);
              if (color[3] === 255) return color;
            }
            return [255, 255, 255];
          };
          const ink = (element) => getComputedStyle(element)[element instanceof SVGElement ? "fill" : "#{color}"];
          return [...document.querySelectorAll("#{selector}")]
            .filter((element) => element.matches("select") || [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
            .filter((element) => element.checkVisibility({ visibilityProperty: true }))
            .map((element) => {
              const [light, dark] = [luminance(parts(ink(element))), luminance(behind(element))].sort((a, b) => b - a);
              return [element.textContent.trim().slice(0, 40), (light + 0.05) / (dark + 0.05)];
            }).filter(([, contrast]) => contrast < #{least});
        })()
      JS
    end
    TOO_FAINT = faint("body *:not(script):not(iframe):not(title)", color: "color", least: 4.5)
    FAINT_EDGES = faint("button, select", color: "borderTopColor", least: 3)
    # What sticks out of the window, outside of what scrolls by itself.
    WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    REMEMBER_VIOLATIONS = <<~JS
      window.violations = [];
      addEventListener("securitypolicyviolation", (event) => violations.push(`${event.violatedDirective} ${event.blockedURI}`));
    JS

    # One for all tests of this process; a new one where somebody has ended it from outside.
    # @return [Ferrum::Browser]
    def self.browser
      @browser = nil if @browser && !alive?(@browser)
      @browser ||= Ferrum::Browser.new(**TestServers.chromium, js_errors: true).tap do |browser|
        Minitest.after_run { browser.quit }
      end
    end

    def self.alive?(browser)
      browser.version && true
    rescue Ferrum::DeadBrowserError
      false
    end
    private_class_method :alive?

    # @param url [String, nil] nil to go there in the block
    # @param bypass [Boolean] whether policies are not looked at, so that escaping must hold alone
    # @yieldparam page [Ferrum::Page]
    def browse(url = nil, width: 1280, scheme: "light", bypass: false)
      needs :chromium
      context = Browsing.browser.contexts.create
      page = prepared(context.create_page, width, scheme, bypass)
      page.go_to(url) if url
      yield page
    ensure
      context&.dispose
    end

    # Until this holds; fails with what the page shows.
    # @param condition [String] JavaScript
    def await(page, condition, seconds: 20)
      page.evaluate_async("const look = () => (#{condition}) ? arguments[0](true) : setTimeout(look, 20); look()", seconds)
    rescue Ferrum::ScriptTimeoutError
      flunk "never true in #{seconds} s: #{condition}\n#{page.evaluate('document.body.innerText')[0, 2_000]}"
    end

    # A click with the mouse, on what may be below the window.
    def press(page, selector)
      element = page.at_css(selector)
      page.execute("arguments[0].scrollIntoViewIfNeeded()", element)
      element.click
    end

    # @param scheme [String] "light" or "dark"
    def emulate(page, scheme)
      page.command("Emulation.setEmulatedMedia", features: [{ name: "prefers-color-scheme", value: scheme }])
    end

    # @return [Array<String>] of the page and its frames
    def violations(page)
      page.frames.flat_map { |frame| frame.evaluate("window.violations || []") }
    end

    # @return [Array<String>] what was asked of servers
    def asked(page) = page.network.traffic.map(&:url).reject { |url| url.start_with?("data:", "about:") }

    private

    def prepared(page, width, scheme, bypass)
      page.command("Emulation.setDeviceMetricsOverride", width: width, height: 900, deviceScaleFactor: 1, mobile: width < 600)
      emulate(page, scheme)
      page.command("Page.addScriptToEvaluateOnNewDocument", source: REMEMBER_VIOLATIONS)
      page.command("Page.setBypassCSP", enabled: bypass)
      page
    end
  end
end
