# frozen_string_literal: true

require "fileutils"
require "json"
require "net/http"
require "open3"
require "tmpdir"
require "yaml"

module Castellan
  # Sets up an example application of examples/ with its own database and runs it in its own process.
  #
  #   example = ExampleProcess.started("users", "sqlite3:/tmp/x/users.sqlite3")   # once per test process
  #   example.get("/users/1").body
  #   example.queries { example.get("/users/1") }                                 # => 8, from its log
  #   example.steps.first["get"]                                                  # steps.yml
  #
  # Not thread-safe while it counts queries.
  class ExampleProcess
    QUERY = /\(\d+\.\d+ms\).*?(SELECT|INSERT|UPDATE|DELETE) /

    attr_reader :name, :env

    # Returns the same process for equal arguments.
    def self.started(name, database_url)
      (@started ||= {})[[name, database_url]] ||= new(name, "DATABASE_URL" => database_url).tap(&:setup!).tap(&:boot)
    end

    # @return [String] the URL of a new SQLite file, which is removed at exit
    def self.sqlite_url
      dir = Dir.mktmpdir("castellan-example-")
      Minitest.after_run { FileUtils.rm_rf(dir) }
      "sqlite3:#{File.join(dir, 'example.sqlite3')}"
    end

    def initialize(name, env = {})
      @name = name
      @env = { "RAILS_LOG_LEVEL" => "debug", "RAILS_ENV" => "production" }.merge(env)
    end

    def dir = File.join(ROOT, "examples", name)
    def story = @story ||= YAML.safe_load_file(File.join(dir, "steps.yml"), aliases: true)
    def steps = story.fetch("steps")
    def step(id) = steps.find { |step| step["id"] == id } || raise(KeyError, "no step #{id}")

    # @return [Array(String, Boolean)] the output of bin/setup, and whether it succeeded
    def setup(extra = {}) = run(File.join(dir, "bin/setup"), extra)

    def setup!
      output, success = setup
      raise output unless success
    end

    # Runs Ruby in the application's bundle, with the application loaded.
    def ruby(code, extra = {})
      run("bundle", "exec", "ruby", "-r./config/environment", "-e", code, { "BUNDLE_GEMFILE" => "#{dir}/Gemfile" }.merge(extra))
    end

    def boot
      @server = TestServers.puma(dir, env: env)
    end

    def get(path, headers = story["headers"]) = request(Net::HTTP::Get, path, headers)
    def json(path, headers = story["headers"]) = JSON.parse(get(path, headers).body)

    def request(verb, path, headers = story["headers"], json: nil)
      message = verb.new(path, headers)
      if json
        message["Content-Type"] = "application/json"
        message.body = JSON.generate(json)
      end
      Net::HTTP.start("127.0.0.1", @server.port) { |http| http.request(message) }
    end

    # @return [Integer] the number of queries in the application's log during the block, without query cache
    #   hits
    def queries
      from = File.size(@server.log_path)
      yield
      File.open(@server.log_path) { |log| log.seek(from) && log.each_line.count { |line| line.match?(QUERY) && !line.include?("CACHE") } }
    end

    # @return [Object] the parsed body without the values that patterns of steps.yml match; see the head of
    #   steps.yml
    def self.without(patterns, body)
      patterns.each_with_object(JSON.parse(body)) { |pattern, document| Pattern.remove(document, pattern.split("/").drop(1)) }
    end

    private

    def run(*command, extra)
      output, status = Bundler.with_unbundled_env { Open3.capture2e(env.merge(extra), *command, chdir: dir, stdin_data: "") }
      [output, status.success?]
    end

    # A path of segments; `*` matches each one.
    module Pattern
      module_function

      def remove(node, path)
        segment, *rest = path
        return children(node, segment).map(&:last).each { |child| remove(child, rest) } if rest.any?

        children(node, segment).map(&:first).reverse_each { |key| node.is_a?(Array) ? node.delete_at(key) : node.delete(key) }
      end

      def children(node, segment)
        return [] unless node.is_a?(Array) || node.is_a?(Hash)

        pairs = node.is_a?(Array) ? node.each_with_index.map { |child, index| [index, child] } : node.to_a
        segment == "*" ? pairs : pairs.select { |key, _| key.to_s == segment }
      end
    end
    private_constant :Pattern
  end

  # The contract of every example application; the including class defines `example`.
  module ExamplePromises
    KEYS = %w[id title get told compared_with differs reason code with_castellan story_value].freeze

    def test_each_step_has_every_key_and_an_existing_file
      example.steps.each do |step|
        assert_empty KEYS - step.keys, step["id"]
        assert_path_exists File.join(example.dir, step["code"])
      end
    end

    def test_each_step_is_compared_with_an_earlier_corrected_one
      correct = []
      example.steps.each do |step|
        assert_includes [nil, *correct], step["compared_with"], step["id"]
        correct << step["id"] unless step["told"]
      end
    end

    def test_a_corrected_step_differs_from_the_step_before_only_as_declared
      each_corrected do |step, differs, before, cold, warm|
        expected = without(differs, before)
        assert_equal expected, without(differs, cold), step["id"]
        assert_equal expected, without(differs, warm), step["id"]
        differs.each do |pattern|
          others = differs - [pattern]
          refute_equal without(others, before), without(others, cold), "#{step['id']}: #{pattern} does not differ"
        end
      end
    end

    private

    def without(patterns, body) = Castellan::ExampleProcess.without(patterns, body)

    def each_corrected
      bodies = Hash.new { |known, id| known[id] = example.get(example.step(id)["get"]).body }
      example.steps.reject { |step| step["told"] || step["with_castellan"] || !step["compared_with"] }.each do |step|
        yield step, step["differs"], bodies[step["compared_with"]], bodies[step["id"]], example.get(step["get"]).body
      end
    end
  end

  # Tests that one database suffices for.
  module ExampleProcessPromises
    def test_the_application_loads_castellan_only_on_request
      code = "puts $LOADED_FEATURES.grep(%r{/lib/castellan(/(?!version)|\\.rb)}).size"
      without, ok = example.ruby(code)
      assert ok, without
      assert_equal "0", without.lines.last.chomp
      with, ok = example.ruby(code, "WITH_CASTELLAN" => "1")
      assert ok, with
      assert_operator Integer(with.lines.last), :>, 0
    end

    def test_setting_up_again_does_nothing
      output, ok = example.setup
      assert ok, output
      assert_includes output, "already"
    end
  end
end
