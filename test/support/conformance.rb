# frozen_string_literal: true

require "json"
require "yaml"

module Castellan
  # Lists the normative statements of JSON:API 1.1 and two extensions, and the tests that cover them.
  #
  #   module WritesContract
  #     extend Castellan::Conformance::Covers
  #
  #     covers "create-responses-201-status"     # the next test covers this statement
  #     def test_post_creates_a_record …
  #
  #   Castellan::Conformance.page   # => docs/conformance.md, which `rake conformance` writes
  #
  # A statement that no test can cover has a reason in jsonapi/reasons.yml.
  module Conformance
    # `number` counts the statements with the same id.
    Statement = Struct.new(:id, :level, :text, :number)
    DATA = File.expand_path("jsonapi", __dir__)
    TESTS = File.expand_path("..", __dir__)
    TEXTS = { "JSON:API 1.1" => "format-1.1.json", "Atomic Operations" => "atomic-operations.json",
              "Cursor Pagination" => "cursor-pagination.json" }.freeze
    TAG = /^ *covers\(?((?:\s*"[^"]+",?)+)\)?\n *def (test_\w+)/
    private_constant :DATA, :TESTS, :TEXTS, :TAG

    # Checks that tagged statements exist.
    module Covers
      def covers(*ids)
        unknown = ids - Conformance.ids
        raise ArgumentError, "there is no statement #{unknown.join(", ")}" if unknown.any?
      end
    end

    module_function

    # @return [Hash{String => Array<Statement>}] by text
    def statements
      @statements ||= TEXTS.transform_values do |file|
        data = JSON.parse(File.read(File.join(DATA, file)))
        found = data.is_a?(Hash) ? data["included"].map { |one| { "id" => one["id"], **one["attributes"] } } : data
        found.map { |one| Statement.new(one["id"], one["level"], one["description"]) }
      end
    end

    # @return [Array<String>]
    def ids
      @ids ||= statements.values.flatten.map(&:id).uniq.freeze
    end

    # @return [Hash{String => Array<String>}] id => "serve/writes_test.rb: post creates a record …"
    def tests
      @tests ||= Dir.glob("**/*_test.rb", base: TESTS).sort.each_with_object({}) do |path, found|
        File.read(File.join(TESTS, path)).scan(TAG) do |tags, name|
          tags.scan(/"([^"]+)"/).flatten.each { |id| (found[id] ||= []) << [path, name] }
        end
      end
    end

    # @return [Hash{String => String}] id => why no test covers the statement
    def reasons
      @reasons ||= YAML.safe_load_file(File.join(DATA, "reasons.yml")).each_with_object({}) do |(reason, ids), found|
        ids.split.each { |id| found[id] = reason }
      end
    end

    # @return [String] Markdown
    def page
      <<~MARKDOWN
        # Conformance

        The normative statements of JSON:API 1.1 and of the two extensions that Castellan speaks, with the tests that hold `Castellan.app` to them. The tests
        send HTTP requests through Rack::Lint, on ActiveRecord and Sequel, SQLite and PostgreSQL. `rake conformance` writes this page from the tests.

        | text | statements | with a test | with a reason |
        |---|---|---|---|
        #{statements.map { |title, all| "| #{title} | #{all.size} | #{all.count { |one| tests.key?(one.id) }} | #{all.count { |one| !tests.key?(one.id) }} |" }.join("\n")}

        #{statements.map { |title, all| section(title, all) }.join("\n\n")}
      MARKDOWN
    end

    def section(title, all)
      "## #{title}\n\n| statement | level | test, or why there is none |\n|---|---|---|\n" +
        all.map { |one| "| **#{one.id}** #{short(one.text)} | #{one.level} | #{proof(one.id)} |" }.join("\n")
    end

    def proof(id)
      return reasons.fetch(id, "**nothing**") unless tests.key?(id)

      tests[id].map { |path, name| "`#{path}`: #{name.delete_prefix("test_").tr("_", " ")}" }.join("; ")
    end

    # The first sentence, on one line.
    def short(text)
      line = text.split(/\n|\\n/).first.gsub("|", "\\|").gsub("**", "")
      line.size > 240 ? "#{line[0, 240].rpartition(" ").first} …" : line
    end
    private_class_method :section, :proof, :short
  end
end
