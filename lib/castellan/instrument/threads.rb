# frozen_string_literal: true

require_relative "../instrument"

module Castellan
  module Instrument
    # Includes threads that start inside a recording in the recording. Opt-in:
    #
    #   require "castellan/instrument/threads"
    #
    # Prepends to `Thread#initialize`, `Thread.start`, `Thread.fork` and `Fiber.schedule` at the first
    # subscription. Each thread has an observer of its own, which `observer.strand` returns; an observer
    # without this method is notified only in the thread that opened the recording. In a thread that was
    # started before, call `Recording.resume(recording) { … }`.
    module Threads
      # Covers `Thread.new`, also of subclasses.
      module New
        def initialize(*arguments, **keywords, &block) = super(*arguments, **keywords, &Threads.wrapped(block))
      end

      # `Thread.start` and `Thread.fork` do not call `initialize`.
      module Start
        def start(*arguments, **keywords, &block) = super(*arguments, **keywords, &Threads.wrapped(block))
        def fork(*arguments, **keywords, &block) = super(*arguments, **keywords, &Threads.wrapped(block))
      end

      # A fiber of a scheduler is like a thread.
      module Schedule
        def schedule(*arguments, **keywords, &block) = super(*arguments, **keywords, &Threads.wrapped(block))
      end

      class << self
        def attach
          Instrument.prepend(New, Thread)
          Instrument.prepend(Start, Thread.singleton_class)
          Instrument.prepend(Schedule, Fiber.singleton_class)
        end

        # Public because the modules above call it.
        # @param block [Proc, nil] the work of the thread
        # @return [Proc, nil] the same work, in the recording of the thread that starts it
        def wrapped(block)
          recording = block && Instrument.subscribed? && Recording.current or return block

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
