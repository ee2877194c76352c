# frozen_string_literal: true

require "fileutils"
require "ferrum"
require_relative "profiled_story"

module Castellan
  # Takes the pictures for the README from the users example, in headless Chromium.
  #
  #   Screenshots.new("docs/screenshots").call   # => ["docs/screenshots/requests.png", …]
  class Screenshots
    DESK = 1100
    PHONE = 390
    # `from` selects an element of the first section in the picture. `height` is in pixels.
    Shot = Struct.new(:name, :path, :from, :height, :width, :scheme, keyword_init: true)

    # @param directory [String]
    def initialize(directory)
      @directory = directory
    end

    # @return [Array<String>] the files
    def call = ProfiledStory.told { |story| of(story) }

    # @param story [ProfiledStory]
    # @param names [Array<String>, nil] the names of the pictures; nil for all
    # @return [Array<String>] the files
    def of(story, names: nil)
      FileUtils.mkdir_p(@directory)
      shots(story).select { |shot| names.nil? || names.include?(shot.name) }.map { |shot| take(story, shot) }
    ensure
      @browser&.quit
    end

    private

    def shots(story)
      slow = "/requests/#{story.ids[ProfiledStory::SLOW]}"
      [Shot.new(name: "requests", path: "", height: 900), Shot.new(name: "requests-dark", path: "", height: 900, scheme: "dark"),
       Shot.new(name: "request", path: slow, height: 900), Shot.new(name: "request-phone", path: slow, height: 800, width: PHONE),
       Shot.new(name: "queries", path: slow, from: "#queries", height: 620),
       Shot.new(name: "memory", path: "/requests/#{story.ids["memory"]}", from: "#memory", height: 700),
       Shot.new(name: "flame", path: "/requests/#{story.ids["wall"]}", from: "#flame", height: 720), *comparisons(story)]
    end

    def comparisons(story)
      story.comparisons.map do |before, after|
        Shot.new(name: "compare-#{after.tr("_", "-")}", path: "/compare?a=#{story.ids[before]}&b=#{story.ids[after]}", height: 700)
      end
    end

    def take(story, shot)
      page = browser.create_page
      page.command("Emulation.setDeviceMetricsOverride", width: shot.width || DESK, height: shot.height, deviceScaleFactor: 1,
                                                         mobile: shot.width == PHONE)
      page.command("Emulation.setEmulatedMedia", features: [{ name: "prefers-color-scheme", value: shot.scheme || "light" }])
      page.go_to(story.link)
      page.go_to("#{story.page}#{shot.path}")
      File.join(@directory, "#{shot.name}.png").tap { |file| page.screenshot(path: file, area: area(page, shot)) }
    ensure
      page&.close
    end

    # Resizes the window to the end of the captured section, because Chromium draws nothing below the window.
    def area(page, shot)
      top = shot.from ? page.evaluate("document.querySelector('#{shot.from}').closest('section').getBoundingClientRect().top") - 12 : 0
      width = shot.width || DESK
      page.command("Emulation.setDeviceMetricsOverride", width: width, height: (top + shot.height).ceil, deviceScaleFactor: 1,
                                                         mobile: shot.width == PHONE)
      settle(page)
      scroll_flame(page)
      { x: 0, y: top, width: width, height: shot.height }
    end

    # The flame graph loads after the page, and is drawn one frame later.
    def settle(page)
      page.evaluate_async(<<~JS, 30)
        const frame = document.querySelector("iframe.flame");
        const there = () => !frame || frame.contentDocument?.body?.innerText.includes("Left Heavy");
        const look = () => there() ? requestAnimationFrame(() => setTimeout(arguments[0], 500)) : setTimeout(look, 20);
        look();
      JS
    end

    # Scrolls past the frames of Rack and Rails, which are the same for every request.
    def scroll_flame(page)
      page.evaluate_async(<<~JS, 30)
        const graph = document.querySelector("iframe.flame")?.contentDocument;
        const place = graph?.elementFromPoint(400, 400);
        place?.dispatchEvent(new WheelEvent("wheel", { deltaY: 950, bubbles: true, cancelable: true, clientX: 400, clientY: 400 }));
        setTimeout(arguments[0], place ? 500 : 0);
      JS
    end

    def browser = @browser ||= Ferrum::Browser.new(**TestServers.chromium)
  end
end
