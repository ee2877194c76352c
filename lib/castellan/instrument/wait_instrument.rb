# frozen_string_literal: true

module Castellan
  module Instrument
    # Tells recordings that the program waited for a time in another way than by `sleep`, and that the time ran out: as with
    # {SleepInstrument}, who asks the database again after that waits for something to change.
    #
    #   until Job.exists?(state: "done")
    #     condition.wait(mutex, 0.1)          # told as Recording#slept
    #   end
    #
    # Seen are `IO.select`, `Thread#join` and, from Ruby 3.2 on, `Queue#pop` and `SizedQueue#pop` that were given a time and have nothing to
    # give after it, and each `ConditionVariable#wait` with a time. Ruby has no hook for them, so they are prepended, once and for the life
    # of the process. Who waits without a limit waits for work, which is no polling.
    module WaitInstrument
      # Prepended to IO's singleton class.
      module Select
        def select(reads, writes = nil, errors = nil, timeout = nil)
          super.tap { |ready| WaitInstrument.tell(timeout) if ready.nil? }
        end
      end

      # Prepended to Thread.
      module Join
        def join(limit = nil)
          super.tap { |ended| WaitInstrument.tell(limit) if ended.nil? }
        end
      end

      # Prepended to Thread::ConditionVariable.
      module Wait
        def wait(mutex, timeout = nil)
          super.tap { WaitInstrument.tell(timeout) }
        end
      end

      # Prepended to Thread::Queue and Thread::SizedQueue where they take a time.
      module Pop
        %i[pop shift deq].each do |name|
          define_method(name) do |non_block = false, timeout: nil|
            super(non_block, timeout: timeout).tap { |found| WaitInstrument.tell(timeout) if found.nil? }
          end
        end
      end

      class << self
        def loaded? = true
        def attached? = @attached || false

        def attach
          hooks.each { |owner, hook| owner.prepend(hook) unless owner.include?(hook) }
          @attached = true
        end

        def detach
          @attached = false
        end

        # @param limit [Numeric, nil] the seconds that were given; none is not waited for at all
        # @return [void]
        def tell(limit)
          Recording.current&.slept if @attached && limit && limit != 0
        end

        # @return [Boolean] whether a queue can be asked to wait for a time
        def timed?(queue) = queue.instance_method(:pop).parameters.include?(%i[key timeout])

        private

        def hooks
          queues = [Thread::Queue, Thread::SizedQueue].select { |queue| timed?(queue) || queue.include?(Pop) }
          [[IO.singleton_class, Select], [Thread, Join], [Thread::ConditionVariable, Wait], *queues.map { |queue| [queue, Pop] }]
        end
      end
    end
  end
end
