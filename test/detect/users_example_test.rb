# frozen_string_literal: true

require "test_helper"
require_relative "../examples/example_process"

# The findings of the users example at each step, with file and line; the next step applies their fixes.
class DetectUsersExampleTest < Minitest::Test
  URL = Castellan::ExampleProcess.sqlite_url
  SERIALIZER = "app/serializers/user_serializer.rb"
  INDEX_SERIALIZER = "app/serializers/user_index_serializer.rb"

  PROGRAM = <<~RUBY
    require "castellan/detect"
    require "rack/mock"
    require "yaml"
    story = YAML.safe_load_file("steps.yml")
    headers = { "HTTP_AUTHORIZATION" => story["headers"]["Authorization"], "HTTP_HOST" => "localhost" }
    findings = story["steps"].reject { |step| step["with_castellan"] }.to_h do |step|
      get = -> { Rack::MockRequest.new(Rails.application).get(step["get"], headers).status }
      abort step["id"] unless get.call == 200
      [step["id"], Castellan::Detect.watch(slow_ms: nil) { get.call }.map(&:to_h)]
    end
    puts JSON.generate(findings)
  RUBY

  def self.findings
    @findings ||= begin
      example = Castellan::ExampleProcess.new("users", "DATABASE_URL" => URL).tap(&:setup!)
      JSON.parse(watched(example).lines.last)
    end
  end

  def self.watched(example)
    env = example.env.merge("BUNDLE_GEMFILE" => File.join(example.dir, "Gemfile"), "RAILS_LOG_LEVEL" => "error")
    command = ["bundle", "exec", "ruby", "-I#{File.join(ROOT, "lib")}", "-rcastellan", "-r./config/environment", "-e", PROGRAM]
    output, status = Bundler.with_unbundled_env { Open3.capture2e(env, *command, chdir: example.dir) }
    status.success? ? output : raise(output)
  end

  def test_the_baseline_has_seven_repeated_associations
    controller = "app/controllers/users/baseline_controller.rb"
    assert_equal %w[assignments authentication_tokens direct_roles employee group_assignments groups roles], associations("baseline").sort
    assert_equal [[162, 162]], of("baseline").map { |finding| finding.values_at("count", "parent_count") }.uniq
    assert_equal [place(controller, "render json")], of("baseline").map { |finding| finding["parent_location"] }.uniq
    assert_equal place(SERIALIZER, "employee&.id"), finding("baseline", "employee")["location"]
    assert_equal place(SERIALIZER, "authentication_tokens"), finding("baseline", "authentication_tokens")["location"]
    assert_equal place(controller, "render json"), finding("baseline", "roles")["location"]
    assert_includes finding("baseline", "roles")["fix"],
                    "add .preload(:direct_roles, :employee, :assignments, :roles, :group_assignments, :groups) where the users are loaded"
  end

  def test_the_reported_query_counts_users_and_not_joined_rows
    assert_equal [162], of("includes_told").map { |finding| finding["parent_count"] }.uniq
  end

  def test_each_step_leaves_the_findings_that_the_next_one_fixes
    assert_equal %w[authentication_tokens direct_roles employee], associations("includes").sort
    assert_equal %w[authentication_tokens employee], associations("index_serializer").sort
    assert_equal %w[authentication_tokens], associations("all_associations")
    %w[last_login jsonapi_serializer record_cache].each { |step| assert_empty of(step), step }
  end

  def test_the_finding_that_no_tool_could_fix_has_its_fix
    finding = finding("all_associations", "authentication_tokens")
    assert_equal place(INDEX_SERIALIZER, "authentication_tokens"), finding["location"]
    assert_match(/\Aadd \.preload\(:last_login\) where the users are loaded: \S+; and read \.last_login at/, finding["fix"])
  end

  private

  def of(step) = self.class.findings.fetch(step)
  def associations(step) = of(step).map { |finding| finding["association"].delete_prefix("User#") }
  def finding(step, association) = of(step).find { |finding| finding["association"] == "User##{association}" }

  # Returns "path:line" of the first line with the text.
  def place(path, text)
    line = File.foreach(File.join(ROOT, "examples/users", path)).with_index(1).find { |source, _| source.include?(text) }.last
    "#{path}:#{line}"
  end
end
