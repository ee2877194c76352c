# frozen_string_literal: true

module Castellan
  module Instrument
    # Lets a thread that is started inside a recording work for it: Ruby 3.1 hands nothing on to a new thread, and later
    # versions hand on the recording itself, in which two threads would be mixed up.
    #
    #   ThreadInstrument.attach    # {Instrument.subscribe} does
    #
    # Each thread tells observers of its own, which those that want to hear of threads make: `observer.strand`. The others
    # hear of the thread that opened the recording and no more. Ruby has no hook for the start of a thread that knows who
    # started it, so four methods are prepended, once and for the life of the process; without a recording each costs one
    # look at a thread variable. Not for threads that were there before: hand the recording over with `Recording.resume`.
    module ThreadInstrument
      # Prepended to Thread: `Thread.new`, also of subclasses.
      module New
        def initialize(*arguments, **keywords, &block)
          super(*arguments, **keywords, &ThreadInstrument.wrapped(block))
        end
      end

      # Prepended to Thread's singleton class: these do not call `initialize`.
      module Start
        def start(*arguments, **keywords, &block) = super(*arguments, **keywords, &ThreadInstrument.wrapped(block))
        def fork(*arguments, **keywords, &block) = super(*arguments, **keywords, &ThreadInstrument.wrapped(block))
      end

      # Prepended to Fiber's singleton class: a fiber of a scheduler is like a thread. (One that its starter resumes shares the
      # recording of the thread.)
      module Schedule
        def schedule(*arguments, **keywords, &block) = super(*arguments, **keywords, &ThreadInstrument.wrapped(block))
      end

      class << self
        def loaded? = true
        def attached? = @attached || false

        def attach
          unless Thread.include?(New)
            Thread.prepend(New)
            Thread.singleton_class.prepend(Start)
            Fiber.singleton_class.prepend(Schedule) if Fiber.respond_to?(:schedule)
          end
          @attached = true
        end

        def detach
          @attached = false
        end

        # @param block [Proc, nil] what the thread will do
        # @return [Proc, nil] the same, inside the recording of who starts it
        def wrapped(block)
          recording = block && attached? && Recording.current or return block

          strand = strand_of(recording)
          proc { |*arguments, **keywords| Recording.resume(strand) { block.call(*arguments, **keywords) } }
        end

        private

        def strand_of(recording)
          return if recording.nil?

          around = strand_of(recording.parent)
          recording.observer.respond_to?(:strand) ? Recording.new(recording.observer.strand, around) : around
        end
      end
    end
  end
end
