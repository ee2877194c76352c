# frozen_string_literal: true

# A fiber scheduler, like that of Falcon, without input and output: fibers that wait for one another take turns.
class Turns
  # Runs the blocks as fibers of one thread, until all of them have ended.
  # @return [Array] their results
  def self.run(*blocks)
    results = Array.new(blocks.size)
    Thread.new do
      Fiber.set_scheduler(new)
      blocks.each_with_index { |block, index| Fiber.schedule { results[index] = block.call } }
    end.join
    results
  end

  def initialize
    @ready = Thread::Queue.new
    @waiting = 0
  end

  def fiber(&block) = Fiber.new(blocking: false, &block).tap(&:resume)

  def block(_blocker, _timeout = nil)
    @waiting += 1
    Fiber.yield
    true
  end

  def unblock(_blocker, fiber) = @ready << fiber

  # Of a ConditionVariable, until it is signaled.
  def kernel_sleep(*) = block(nil)
  def io_wait(*) = raise(NotImplementedError, "without input and output")

  def close
    while @waiting.positive?
      fiber = @ready.pop(true) # raises if all fibers wait
      @waiting -= 1
      fiber.resume
    end
  end
end
