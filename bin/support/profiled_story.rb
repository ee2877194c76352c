# frozen_string_literal: true

require "bundler"
require "json"
require "net/http"
require "securerandom"
require "tmpdir"
require "uri"
require "yaml"
require "castellan"
require "castellan/profile"
require_relative "../../test/support/servers"

module Castellan
  # Runs the users example in production and profiles each corrected step of its story, in order.
  #
  #   ProfiledStory.told do |story|
  #     story.link                      # => "http://127.0.0.1:40001/castellan?castellan_token=…", for a browser
  #     story.ids["index_serializer"]   # => "Xk3…", the profile of this step
  #     story.ids["memory"]             # => the profile of the slow step, with its memory
  #     story.comparisons               # => [["baseline", "includes"], …]
  #   end
  #
  # Uses a database of its own. Requests each step WARM_UPS times without a profile before, because the first
  # requests of a process are slower.
  class ProfiledStory
    DIRECTORY = File.expand_path("../../examples/users", __dir__)
    SLOW = "index_serializer"
    DEPTHS = %w[memory wall].freeze
    WARM_UPS = 3
    private_constant :WARM_UPS

    # @return the result of the block
    def self.told
      Dir.mktmpdir("castellan-story-") do |dir|
        env = { "RAILS_ENV" => "production", "DATABASE_URL" => "sqlite3:#{File.join(dir, "users.sqlite3")}" }
        prepare(env)
        secret = SecureRandom.hex(32)
        env = env.merge("WITH_CASTELLAN" => "1", "PROFILE_SECRET" => secret, "PROFILE_DIRECTORY" => File.join(dir, "profiles"))
        TestServers.puma(DIRECTORY, env: env) { |base| yield new(base, secret).tell }
      end
    end

    def self.prepare(env)
      done = Bundler.with_unbundled_env { system(env, File.join(DIRECTORY, "bin/setup"), out: File::NULL) }
      raise "examples/users/bin/setup failed" unless done
    end
    private_class_method :prepare

    # @return [Hash{String => String}] the ids of the profiles: one per step, and for the slow step one per
    #   depth
    attr_reader :ids
    # @return [String] the URL of the page
    attr_reader :page

    # @param base [String] the URL of the server
    # @param secret [String] the secret of its tokens
    def initialize(base, secret)
      @base = base
      @page = "#{base}/castellan"
      @token = Profile::Token.new(secret).sign(3_600)
      @ids = {}
    end

    # Profiles all steps.
    # @return [self]
    def tell
      DEPTHS.each { |depth| @ids[depth] = profiled(step(SLOW), depth) }
      steps.each { |step| @ids[step["id"]] = profiled(step, "sql") }
      self
    end

    # @return [String] a signed URL for a browser
    def link = "#{@page}?castellan_token=#{@token}"

    # @return [Array<Hash>] the steps of steps.yml, except the wrong ones
    def steps = story["steps"].reject { |step| step["told"] }

    # @return [Array<(String, String)>] pairs of step ids: the step to compare with, and the step
    def comparisons = steps.filter_map { |step| [step["compared_with"], step["id"]] if step["compared_with"] }

    # @return [Array<Hash>] the rows of `/castellan/requests.json`
    def summaries = JSON.parse(get("/castellan/requests.json").body)

    private

    def story = @story ||= YAML.safe_load_file(File.join(DIRECTORY, "steps.yml"))

    def step(id) = steps.find { |one| one["id"] == id }

    def profiled(step, depth)
      WARM_UPS.times { get(step["get"], token: false) }
      response = get(step["get"], { "castellan-profile" => depth })
      raise "#{step["id"]} answers #{response.code}" unless response.code == "200"

      newest(step["get"], depth)
    end

    # A profile is stored after the response was sent, possibly a moment after the client has read it.
    def newest(target, depth)
      deadline = TestServers.now + 30
      loop do
        found = summaries.find { |one| target.start_with?(one["path"]) && one["depth"] == depth && !@ids.value?(one["id"]) }
        return found.fetch("id") if found && target.delete_prefix(found["path"]).start_with?("?")
        raise "no profile of #{target} is kept" if TestServers.now > deadline

        sleep 0.01
      end
    end

    def get(path, headers = {}, token: true)
      headers = story["headers"].merge(headers)
      headers = headers.merge("castellan-token" => @token) if token
      Net::HTTP.get_response(URI("#{@base}#{path}"), headers)
    end
  end
end
