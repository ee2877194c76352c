# frozen_string_literal: true

module Benchmarks
  # Runs a block in a process of its own, so that memory that it leaves does not slow down the next one.
  #
  #   Apart.call { [1, 2] }   # => [1, 2]; the block's result must be marshalable
  #
  # If the process fails, exits with the same status. The child process skips the exit handlers and finalizers
  # of the parent, because they would close the parent's connections.
  module Apart
    module_function

    def call
      reader, writer = IO.pipe
      pid = fork do
        reader.close
        leave { writer.write(Marshal.dump(yield)) && writer.close }
      end
      writer.close
      answer = reader.read
      Process.wait(pid)
      $?.success? ? Marshal.load(answer) : exit($?.exitstatus || 1) # rubocop:disable Security/MarshalLoad
    end

    def leave
      status = 1
      yield
      status = 0
    rescue SystemExit => error
      status = error.status
    rescue StandardError, ScriptError => error
      warn error.full_message
    ensure
      $stdout.flush
      exit!(status)
    end
    private_class_method :leave
  end
end
