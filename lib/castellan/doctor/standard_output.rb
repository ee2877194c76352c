# frozen_string_literal: true

require "tempfile"

module Castellan
  module Doctor
    # Separates the doctor's output from that of the application, which may log to standard output.
    #
    #   output = StandardOutput.new($stdout)   # from now on, standard output goes to a temporary file
    #   output.puts "a report"         # prints to the original standard output
    #   output.last_lines              # => the last lines that the application printed
    #   output.close                   # restores standard output
    #
    # If the given output is not the standard output of the process, nothing is redirected.
    class StandardOutput
      LINES = 12
      private_constant :LINES

      def initialize(out)
        @out = out
        return unless out.equal?($stdout) && out.respond_to?(:fileno) && out.fileno == 1

        @log = Tempfile.new("castellan-doctor")
        $stdout.flush
        @out = $stdout.dup
        @out.sync = true
        $stdout.reopen(@log)
        $stdout.sync = true
      end

      def puts(*lines) = @out.puts(*lines)

      # @return [String] the last lines that the application printed, indented; "" if there are none
      def last_lines = @log ? File.readlines(@log.path).last(LINES).map { |line| "    #{line.scrub}" }.join : ""

      def close
        return unless @log

        $stdout.flush
        $stdout.reopen(@out)
        @out.close
        @log.close!
      end
    end
  end
end
