# frozen_string_literal: true

require "ferrum"

module Castellan
  # Opens pages in headless Chromium, each in its own context, and records violations and requests.
  #
  #   include Castellan::Browsing
  #   browse(url, width: 360, scheme: "dark") do |page|
  #     await(page, "document.title === 'Ready'")
  #     assert_empty page.evaluate(TOO_FAINT)
  #   end
  #
  # All tests of a process share one browser. `violations` lists violations of the Content-Security-Policy,
  # also in frames.
  module Browsing
    # Finds elements with too little contrast to their background (WCAG 2.2: 1.4.3 requires 4.5 for text,
    # 1.4.11 requires 3 for the edges of controls).
    # @param selector [String] CSS
    # @param color [String] the CSS property with the color
    # @param least [Numeric] the lowest valid contrast
    # @return [String] JavaScript that returns texts and contrasts
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
    # The number of pixels by which the page is wider than the window, without elements that scroll
    # themselves.
    WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    REMEMBER_VIOLATIONS = <<~JS
      window.violations = [];
      addEventListener("securitypolicyviolation", (event) => violations.push(`${event.violatedDirective} ${event.blockedURI}`));
    JS

    # The browser of this process. Starts a new one if it was terminated.
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

    # @param url [String, nil] the first page; nil if the block navigates
    # @param bypass [Boolean] whether to disable the Content-Security-Policy, to test that escaping alone
    #   suffices
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

    # Waits until the condition is true. Fails with the text of the page.
    # @param condition [String] JavaScript
    def await(page, condition, seconds: 20)
      page.evaluate_async("const look = () => (#{condition}) ? arguments[0](true) : setTimeout(look, 20); look()", seconds)
    rescue Ferrum::ScriptTimeoutError
      flunk "never true in #{seconds} s: #{condition}\n#{page.evaluate('document.body.innerText')[0, 2_000]}"
    end

    def press(page, selector)
      element = page.at_css(selector)
      page.execute("arguments[0].scrollIntoViewIfNeeded()", element)
      element.click
    end

    # @param scheme [String] "light" or "dark"
    def emulate(page, scheme)
      page.command("Emulation.setEmulatedMedia", features: [{ name: "prefers-color-scheme", value: scheme }])
    end

    # @return [Array<String>] the violations in the page and its frames
    def violations(page)
      page.frames.flat_map { |frame| frame.evaluate("window.violations || []") }
    end

    # @return [Array<String>] the requested URLs, without data: and about:
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
