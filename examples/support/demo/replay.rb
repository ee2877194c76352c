# frozen_string_literal: true

module Castellan
  module Demo
    # Replays all stories and collects the figures for the ledger and its report.
    #
    #   replay = Replay.new(stories: %w[users posts mail_logs], seconds: 5, out: $stderr)
    #   replay.call          # fills empty databases, measures every step
    #   replay.ledger        # => Ledger
    #   replay.goals         # => [{ title:, goal:, measured:, reached: }, …]
    class Replay
      STORIES = %w[users posts mail_logs].freeze
      # The users story at the size of its goal: the last step with ActiveRecord, and Castellan.
      LARGE = %w[last_login castellan].freeze
      LARGE_USERS = "1000"
      EXAMPLES = File.expand_path("../..", __dir__)
      private_constant :EXAMPLES

      # @param stories [Array<String>] of {STORIES}
      # @param seconds [Numeric] seconds of load for each step
      # @param runs [Integer] the number of measured runs of each request that is examined
      # @param out [IO] shows the progress
      # @raise [ConfigurationError]
      def initialize(stories: STORIES, seconds: 5, runs: 3, out: $stderr)
        unknown = stories - STORIES
        raise ConfigurationError, "there is no story #{unknown.first}#{Nearest.hint(unknown.first, STORIES)}" if unknown.any?

        @names = stories
        @seconds = seconds
        @runs = runs
        @out = out
        @database = Database.chosen(ENV.fetch("DATABASE_URL", nil), out)
        @rows = []
        @progress = nil
      end

      # After an interruption, {#ledger} has the results so far.
      # @return [self]
      def call
        @names.each { |name| prepare(name) }
        @progress = Progress.new(@out, total: total)
        @budget = Budget.new(seconds: @seconds, steps: loaded, elapsed: @progress.method(:elapsed))
        @names.each { |name| public_send(name) }
        self
      end

      # @return [Ledger] the results so far
      def ledger
        @rows.each_with_object(Ledger.new) { |row, ledger| ledger.add(**row.except(:id), environment: environment) }
      end

      # @return [Array<Hash{Symbol => Object}>] see {Goals}
      def goals
        Goals.new(@rows).to_a
      end

      # More ratios for the report.
      # @return [Array<Hash{Symbol => Object}>] see {Ledger::ReportFiles}
      def ratios
        Goals.new(@rows).ratios
      end

      # @return [Array<String>] one line for each step that needs something that is missing
      def left_out
        @names.flat_map { |name| missing(name).map { |step, what| "left out: #{step.title} (#{what.join(", ")} is missing)" } }
      end

      # @return [Float] seconds of measuring
      def elapsed
        @progress ? @progress.elapsed : 0.0
      end

      # @return [Hash{String => String}]
      def environment
        @environment ||= Ledger::Environment.current(database: @database.to_s, puma: "1 process, 5 threads", clients: LoadedStory::CLIENTS)
      end

      def users
        examine(story("users"), example("users"))
        large_users
      end

      def posts
        loaded = LoadedStory.new(story("posts"), { nil => example("posts") }, budget: @budget, progress: @progress,
                                                                              in_turns: Goals::IN_TURNS, programs: Programs.new(@database))
        loaded.call { |row| @rows << row }
        @rows << loaded.limit("castellan_public")
      end

      def mail_logs
        apps = %w[rails sequel].to_h { |app| [app, example(File.join("mail_logs", app))] }
        LoadedStory.new(story("mail_logs"), apps, budget: @budget, progress: @progress, programs: Programs.new(@database))
                   .call { |row| @rows << row }
      end

      private

      def examine(story, example, **options)
        ExaminedStory.new(story, example, @progress, runs: @runs, **options).call { |row| @rows << row }
      end

      def prepare(name)
        @out.puts "Preparing the example #{name} (its gems and its data, where they are not there yet) …"
        example(name).setup
      rescue Error => error
        @database = @database.instead(error, @out)
        retry
      end

      def story(name)
        read(name).without(missing(name).map { |step, _| step.id })
      end

      def read(name) = Story.read(File.join(EXAMPLES, name))

      # @return [Array<Array(Story::Step, Array<String>)>] what each step lacks
      def missing(name)
        programs = Programs.new(@database)
        read(name).steps.map { |step| [step, programs.missing(step.needs)] }.reject { |_, what| what.empty? }
      end

      def example(name)
        Example.new(File.join(EXAMPLES, name), environment: @database.environment)
      end

      def total
        loaded + (@names.include?("users") ? story("users").steps.size + LARGE.size : 0)
      end

      # The number of steps with load, including the limit.
      def loaded
        (@names - ["users"]).sum { |name| story(name).steps.size } + (@names.include?("posts") ? 1 : 0)
      end

      def large_users
        Dir.mktmpdir("castellan-demo") do |directory|
          url = @database.url || "sqlite3:#{File.join(directory, "users.sqlite3")}"
          large = example("users").with("USERS" => LARGE_USERS, "DATABASE_URL" => url)
          large.setup
          examine(story("users").only(LARGE, as: "users_1000"), large, memory: false)
        ensure
          example("users").setup if @database.url
        end
      end
    end
  end
end
