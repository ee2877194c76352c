# frozen_string_literal: true

require "fileutils"
require "pathname"

module Castellan
  module Demo
    class Ledger
      # Writes a ledger as index.html (standalone), ledger.md and ledger.json.
      #
      #   report = Castellan::Demo::Ledger::ReportFiles.new(
      #     ledger,
      #     targets: [{ title: "users: rate of the resource", goal: "30 ×", measured: "41 ×", reached: true }],
      #     ratios: [{ story: "users", step: "Castellan resource", against: "eager loaded" }],
      #     stories: { "users" => { title: "Users", about: "An index of 1,000 users.", command: "bin/demo --only users" } },
      #     environment: Castellan::Demo::Ledger::Environment.current(database: "SQLite 3.46"), commands: ["bin/demo"]
      #   )
      #   report.write("castellan-report") # => "castellan-report/index.html"
      #
      # Escapes all values. The page loads and sends nothing (Content-Security-Policy).
      class ReportFiles
        # @return [Ledger]
        attr_reader :ledger
        # @return [Array<Hash>] {title:, goal:, measured:, reached:}; reached is true or false, or nil if not
        #   measured
        attr_reader :targets
        # @return [Array<Hash>] {story:, step:, against:, on:}; `on` is a field of {Row}, by default the
        #   leading figure
        attr_reader :ratios
        # @return [Hash{String => Hash}] by story {title:, about:, command:, headline:}, all optional;
        #   `headline` is the step at the top
        attr_reader :stories
        # @return [Hash{String => String}] see {Environment.current}
        attr_reader :environment
        # @return [Array<String>] commands that reproduce the figures
        attr_reader :commands
        # @return [String]
        attr_reader :title

        def initialize(ledger, targets: [], ratios: [], stories: {}, environment: {}, commands: [], title: "Castellan ledger")
          @ledger = ledger
          @targets = targets
          @ratios = ratios
          @stories = stories
          @environment = environment
          @commands = commands
          @title = title
          freeze
        end

        # @param dir [String] created if missing; overwrites existing files with these names
        # @param root [String] the base directory of the `code:` paths
        # @return [String] the path of index.html
        def write(dir, root: Dir.pwd)
          FileUtils.mkdir_p(dir)
          path = File.join(dir, "index.html")
          File.write(path, to_html(root: relative(root, dir)))
          File.write(File.join(dir, "ledger.md"), to_markdown)
          File.write(File.join(dir, "ledger.json"), ledger.to_json)
          path
        end

        # @param root [String] the relative path from the page to the source code
        # @return [String]
        def to_html(root: "..") = Page.new(self, root: root).to_s

        # @return [String]
        def to_markdown
          [ledger.to_markdown, *section("How far", targets.map { |target| target_line(target) }), *section("Times", ratio_lines),
           *section("Environment", environment.map { |name, value| "- #{name}: #{value}" }),
           *section("Produced by", commands.map { |command| "    #{command}" })].join("\n")
        end

        # @return [Array<String>] e.g. "users: “Castellan resource” is 41 × as fast as “eager loaded”"
        def ratio_lines
          ratios.filter_map do |ratio|
            name = ratio[:on] || ledger.find(ratio[:story], ratio[:step])&.leading
            factor = ledger.ratio(ratio[:story], ratio[:step], ratio[:against], on: name) or next
            verb, object = WORDS.fetch(name) { ["is", "as good, by #{name}, as"] }
            "#{ratio[:story]}: “#{ratio[:step]}” #{verb} #{Figures.times(factor)} #{object} “#{ratio[:against]}”"
          end
        end

        WORDS = { duration_ms: ["is", "as fast as"], requests_per_s: ["has", "the rate of"],
                  allocated_objects: ["makes", "fewer objects than"] }.freeze
        STATES = { true => "reached", false => "not reached", nil => "not measured" }.freeze
        private_constant :WORDS

        private

        def relative(root, dir)
          Pathname(root).expand_path.relative_path_from(Pathname(dir).expand_path).to_s
        end

        def section(heading, lines)
          lines.any? ? ["## #{heading}\n", *lines.map { |line| escaped(line) }, ""] : []
        end

        def target_line(target)
          "- #{STATES.fetch(target[:reached])}: #{target[:title]}; goal #{target[:goal]}, measured #{target[:measured] || "nothing"}"
        end

        def escaped(text) = text.gsub("<", "&lt;").gsub(/[[:cntrl:]]+/, " ")
      end
    end
  end
end
