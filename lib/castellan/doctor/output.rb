# frozen_string_literal: true

require "tempfile"

module Castellan
  module Doctor
    # Keeps apart what the application prints (a Rails app logs to standard output in production) and what the doctor says.
    #
    #   output = Output.aside    # from here on standard output goes to a file that nobody sees
    #   output.puts "a report"   # to where standard output led before
    #   output.said              # => the last lines that the application printed
    module Output
      # Standard output before and after.
      class Aside
        LINES = 12
        private_constant :LINES

        def initialize
          @log = Tempfile.new("castellan-doctor")
          $stdout.flush
          @before = $stdout.dup
          @before.sync = true
          $stdout.reopen(@log)
          $stdout.sync = true
        end

        def puts(*lines) = @before.puts(*lines)

        # @return [String] what the application printed last, indented; empty when it printed nothing
        def said
          File.readlines(@log.path).last(LINES).map { |line| "    #{line.scrub}" }.join
        end

        # Puts standard output back.
        def close
          $stdout.flush
          $stdout.reopen(@before)
          @before.close
          @log.close!
        end
      end

      # For an output that is not the process' own.
      class Beside
        def initialize(out)
          @out = out
        end

        def puts(*lines) = @out.puts(*lines)

        def said = ""

        def close; end
      end
      private_constant :Aside, :Beside

      # @param out [IO]
      # @return [#puts, #said, #close]
      def self.aside(out = $stdout)
        out.equal?($stdout) && out.respond_to?(:fileno) && out.fileno == 1 ? Aside.new : Beside.new(out)
      end
    end
  end
end
