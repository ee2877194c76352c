# frozen_string_literal: true

require "socket"

module Castellan
  module Demo
    # Starts and stops the processes of a demo. They end with the demo, see {Watchdog}.
    #
    #   pid = Child.start({}, %w[redis-server --port 41321], out: "log", err: %i[child out])
    #   Child.wait_for(41321, pid, "redis-server", "log")
    #   Child.stop(pid)
    module Child
      BOOT_SECONDS = 60
      STOP_SECONDS = 5
      LOG_LINES = 30
      private_constant :BOOT_SECONDS, :STOP_SECONDS, :LOG_LINES

      module_function

      # In a process group of its own, so that its child processes end with it.
      # @param environment [Hash{String => String, nil}]
      # @param command [Array<String>]
      # @param options of Process.spawn
      # @return [Integer] the process id
      def start(environment, command, **options)
        Process.spawn(environment, *command, pgroup: true, **options).tap { |pid| Watchdog.watch(pid) }
      end

      # @return [Integer] a port of 127.0.0.1 that nobody uses
      def free_port
        server = TCPServer.new("127.0.0.1", 0)
        server.addr[1]
      ensure
        server&.close
      end

      # Returns when the process accepts connections.
      # @param port [Integer] of 127.0.0.1
      # @param pid [Integer]
      # @param name [String] for the message
      # @param log [String] the file with the output
      # @raise [Error] if the process ends, or does not listen within 60 seconds
      def wait_for(port, pid, name, log)
        deadline_ns = Clock.monotonic_ns + (BOOT_SECONDS * 1_000_000_000)
        until connected?(port)
          raise Error, "#{name} does not boot:\n#{tail(log)}" if Process.wait(pid, Process::WNOHANG)
          raise Error, "#{name} did not answer within #{BOOT_SECONDS} s:\n#{tail(log)}" if Clock.monotonic_ns > deadline_ns

          sleep 0.05
        end
      end

      # @param log [String] a file
      # @return [String] its last lines
      def tail(log)
        File.readlines(log).last(LOG_LINES).join.scrub.strip
      end

      # Asks the process to end, and kills it after five seconds.
      # @param pid [Integer, nil]
      def stop(pid)
        return unless pid

        signal("TERM", -pid)
        wait(pid) || (signal("KILL", -pid) && Process.wait(pid))
      rescue Errno::ECHILD
        nil # it has ended
      ensure
        Watchdog.forget(pid) if pid
      end

      def connected?(port)
        TCPSocket.new("127.0.0.1", port).close
        true
      rescue Errno::ECONNREFUSED
        false
      end

      def wait(pid)
        deadline_ns = Clock.monotonic_ns + (STOP_SECONDS * 1_000_000_000)
        until (ended = Process.wait(pid, Process::WNOHANG)) || Clock.monotonic_ns > deadline_ns
          sleep 0.01
        end
        ended
      end

      def signal(name, pid)
        Process.kill(name, pid)
      rescue Errno::ESRCH, Errno::EPERM
        nil
      end
      private_class_method :connected?, :wait, :signal
    end
  end
end
