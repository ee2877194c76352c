# frozen_string_literal: true

require "test_helper"
require_relative "../../examples/example_process"

# Tries the findings of the users example at each step: each fix is accepted and is what the next step does.
class UsersExampleFixesTest < Minitest::Test
  URL = Castellan::ExampleProcess.sqlite_url
  STEPS = %w[baseline includes_told includes index_serializer all_associations last_login_told last_login jsonapi_serializer
             record_cache_told record_cache].freeze

  PROGRAM = <<~RUBY
    require "castellan/doctor"
    require "rack/mock"
    require "yaml"
    story = YAML.safe_load_file("steps.yml")
    headers = { "HTTP_AUTHORIZATION" => story["headers"]["Authorization"], "HTTP_HOST" => "localhost" }
    told = story["steps"].reject { |step| step["with_castellan"] }.to_h do |step|
      get = -> { Rack::MockRequest.new(Rails.application).get(step["get"], headers) }
      abort step["id"] unless get.call.status == 200
      findings = Castellan::Detect.watch(slow_ms: nil) { get.call }
      groups = findings.group_by(&:fix).values
      [step["id"], groups.map { |group| { "findings" => group.map(&:to_h), "trial" => Castellan::Doctor.try(*group, &get).to_h } }]
    end
    puts JSON.generate("steps" => told)
  RUBY

  def self.told
    @told ||= begin
      example = Castellan::ExampleProcess.new("users", "DATABASE_URL" => URL, "RAILS_LOG_LEVEL" => "error").tap(&:setup!)
      env = example.env.merge("BUNDLE_GEMFILE" => File.join(example.dir, "Gemfile"))
      command = ["bundle", "exec", "ruby", "-I#{File.join(ROOT, "lib")}", "-rcastellan", "-r./config/environment", "-e", PROGRAM]
      output, status = Bundler.with_unbundled_env { Open3.capture2e(env, *command, chdir: example.dir) }
      status.success? ? JSON.parse(output.lines.last) : raise(output)
    end
  end

  def test_every_fix_of_every_step_is_accepted
    assert_equal STEPS, self.class.told.fetch("steps").keys
    STEPS.each do |step|
      groups(step).each do |group|
        assert group["trial"]["accepted"], "#{step}: #{group["findings"].first["fix"]}\n#{group["trial"]}"
        assert_equal [true, []], group["trial"].values_at("same", "masked"), step
      end
    end
  end

  def test_the_steps_with_repeated_queries_are_those_of_the_story
    assert_equal %w[baseline includes_told includes index_serializer all_associations], STEPS.select { |step| groups(step).any? }
  end

  def test_the_preloads_of_the_baseline_are_one_change_and_the_token_is_another
    preload, token = groups("baseline").partition { |group| group["findings"].first["declaration"].nil? }
    assert_equal [1, 1], [preload.size, token.size]
    assert_equal 6, preload.first["findings"].size
    assert_equal [1135, 170], queries(preload.first)
    assert_equal [1135, 974], queries(token.first)
  end

  def test_the_trial_of_the_last_fix_reads_the_declared_association
    assert_equal(161, queries(groups("all_associations").first).reduce { |before, after| before - after })
  end

  private

  def queries(group) = group["trial"].values_at("before", "after").map { |run| run["queries"] }
  def groups(step) = self.class.told["steps"].fetch(step)
end
