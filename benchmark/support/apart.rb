# frozen_string_literal: true

module Benchmarks
  # Runs a block in a process of its own, so that what one work leaves in memory is no burden to the next.
  #
  #   Apart.call { [1, 2] }   # => [1, 2]; what the block answers must be something that Marshal writes
  #
  # When the process fails, so does this one, with the same status: it has said why. It leaves without the exit handlers and
  # finalizers of the process that it was made from, which would end connections that are not its own.
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
