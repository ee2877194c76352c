# frozen_string_literal: true

require_relative "../instrument"

module Castellan
  module Instrument
    # Lets a thread that is started inside a recording belong to it. Opt-in, because it prepends to Thread and Fiber:
    #
    #   require "castellan/instrument/threads"
    #
    # Prepended at the first subscription to `Thread#initialize`, `Thread.start`, `Thread.fork` and `Fiber.schedule`; without a
    # recording each costs one look at it. Each thread notifies observers of its own, made by `observer.strand`; an observer
    # without that method is notified of the thread that opened the recording alone. For threads that were there before, hand
    # the recording over: `Recording.resume(recording) { … }`.
    module Threads
      # Prepended to Thread: `Thread.new`, also of subclasses.
      module New
        def initialize(*arguments, **keywords, &block)
          super(*arguments, **keywords, &Threads.wrapped(block))
        end
      end

      # Prepended to Thread's singleton class: these do not call `initialize`.
      module Start
        def start(*arguments, **keywords, &block) = super(*arguments, **keywords, &Threads.wrapped(block))
        def fork(*arguments, **keywords, &block) = super(*arguments, **keywords, &Threads.wrapped(block))
      end

      # Prepended to Fiber's singleton class: a fiber of a scheduler is like a thread. (One that its starter resumes shares the
      # recording of the thread.)
      module Schedule
        def schedule(*arguments, **keywords, &block) = super(*arguments, **keywords, &Threads.wrapped(block))
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

Castellan::Instrument.add(Castellan::Instrument::Threads)
