# frozen_string_literal: true

require "tempfile"

module Castellan
  module Doctor
    # Separates the doctor's output from the application's, which may log to standard output.
    #
    #   output = Output.aside    # from here on standard output goes to a temporary file
    #   output.puts "a report"   # to the original standard output
    #   output.said              # => the last lines that the application printed
    module Output
      # Redirects the process' standard output to a file.
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

        # @return [String] the last lines that the application printed, indented; "" if none
        def said
          File.readlines(@log.path).last(LINES).map { |line| "    #{line.scrub}" }.join
        end

        # Restores standard output.
        def close
          $stdout.flush
          $stdout.reopen(@before)
          @before.close
          @log.close!
        end
      end

      # For an output that is not the process' standard output: redirects nothing.
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
