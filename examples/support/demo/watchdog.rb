# frozen_string_literal: true

require "rbconfig"

module Castellan
  module Demo
    # Ends the processes of the examples when the demo ends, even if it is killed.
    #
    #   pid = Process.spawn("puma", pgroup: true)
    #   Watchdog.watch(pid)
    #   Watchdog.forget(pid)   # after waiting for the process
    #
    # A small process reads the process ids from a pipe and kills their groups when the pipe closes.
    #
    # The process must be the leader of a process group (`pgroup: true`).
    module Watchdog
      PROGRAM = <<~RUBY
        trap("INT", "IGNORE")
        groups = {}
        while (line = $stdin.gets)
          word, pid = line.split
          word == "watch" ? groups[pid.to_i] = true : groups.delete(pid.to_i)
        end
        groups.each_key { |pid| Process.kill("KILL", -pid) rescue nil }
      RUBY
      LOCK = Mutex.new
      private_constant :PROGRAM, :LOCK

      module_function

      # @param pid [Integer] the leader of a process group
      def watch(pid) = tell("watch #{pid}")

      # @param pid [Integer]
      def forget(pid) = tell("forget #{pid}")

      def tell(line)
        LOCK.synchronize { pipe.puts(line) }
      end

      def pipe
        return @pipe if defined?(@pipe) && @owner == Process.pid

        reader, @pipe = IO.pipe
        @pipe.sync = true
        @owner = Process.pid
        pid = Process.spawn({ "RUBYOPT" => nil }, RbConfig.ruby, "--disable-gems", "-e", PROGRAM, in: reader, out: File::NULL, pgroup: true)
        Process.detach(pid)
        reader.close
        @pipe
      end
    end
  end
end
