# frozen_string_literal: true

require_relative "world"
require_relative "contenders"

module Benchmarks
  module Detect
    # Runs one page with and without one contender, in a separate process.
    #
    #   contest = Contest.start(["Bullet"])
    #   contest.round("Bullet", "N+1", false)   # => [[12_000_000, 140_000_000], [12_100_000, 139_000_000]], ns without and with it
    #   contest.stop
    #
    # A round consists of two pairs, the second in reverse order, so that growth from call to call cancels
    # out. Before a round, garbage is collected and both ways run once to warm up. During a round GC is
    # disabled, so the garbage of a contender is not counted.
    class Contest
      def self.start(names)
        asked, ask = IO.pipe
        answers, answer = IO.pipe
        pid = fork do
          [ask, answers].each(&:close)
          new(names).serve(asked, answer)
        end
        [asked, answer].each(&:close)
        Remote.new(pid, ask, answers)
      end

      # The parent's end of the pipes.
      Remote = Struct.new(:pid, :ask, :answers) do
        def round(name, page, watched_first)
          ask.puts(Marshal.dump([name, page, watched_first]).unpack1("H*"))
          line = answers.gets or abort("the process of #{name} ended")
          line.split.map { |number| Integer(number) }.each_slice(2).to_a
        end

        # An empty line ends the process, because processes that started later keep the pipe open.
        def stop
          ask.puts
          Process.wait(pid)
        end
      end

      def initialize(names)
        World.seed
        @contenders = names.to_h { |name| [name, Contenders.make(name)] }
        env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/users" }
        @ways = World::PAGES.to_h do |page, work|
          app = ->(_env) { work.call }
          [page, { plain: -> { app.call(env) }, **@contenders.transform_values { |contender| -> { contender.call(app, env) } } }]
        end
      end

      def serve(asked, answer)
        World.deep do
          while (line = asked.gets) && line != "\n"
            name, page, watched_first = Marshal.load([line.chomp].pack("H*")) # rubocop:disable Security/MarshalLoad
            answer.puts(round(@ways.fetch(page), name, watched_first).join(" "))
            answer.flush
          end
        end
        exit!(0)
      end

      private

      def round(ways, name, watched_first)
        order = watched_first ? [name, :plain] : [:plain, name]
        GC.start
        GC.disable
        order.each { |way| ways.fetch(way).call }
        [order, order.reverse].map do |turn|
          turn.to_h { |way| [way, time(ways.fetch(way))] }.values_at(:plain, name)
        end
      ensure
        GC.enable
      end

      def time(work)
        started = World.cpu_ns
        work.call
        World.cpu_ns - started
      end
    end
  end
end
