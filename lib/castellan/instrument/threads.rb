# frozen_string_literal: true

require_relative "../instrument"

module Castellan
  module Instrument
    # Includes threads that are started inside a recording in the recording. Opt-in, because it prepends to
    # Thread and Fiber:
    #
    #   require "castellan/instrument/threads"
    #
    # Prepended at the first subscription to `Thread#initialize`, `Thread.start`, `Thread.fork` and
    # `Fiber.schedule`. Each thread notifies observers of its own, made by `observer.strand`; observers without
    # that method are notified only of the thread that opened the recording. In threads that were started before,
    # call `Recording.resume(recording) { … }`.
    module Threads
      # Prepended to Thread, for `Thread.new` of it and its subclasses.
      module New
        def initialize(*arguments, **keywords, &block) = super(*arguments, **keywords, &Threads.wrapped(block))
      end

      # Prepended to Thread's singleton class: these do not call `initialize`.
      module Start
        def start(*arguments, **keywords, &block) = super(*arguments, **keywords, &Threads.wrapped(block))
        def fork(*arguments, **keywords, &block) = super(*arguments, **keywords, &Threads.wrapped(block))
      end

      # Prepended to Fiber's singleton class: a fiber of a scheduler is like a thread.
      module Schedule
        def schedule(*arguments, **keywords, &block) = super(*arguments, **keywords, &Threads.wrapped(block))
      end

      class << self
        # Prepends to Thread and Fiber.
        def attach
          Instrument.prepend(New, Thread)
          Instrument.prepend(Start, Thread.singleton_class)
          Instrument.prepend(Schedule, Fiber.singleton_class)
        end

        # Public for the modules above.
        # @param block [Proc, nil] the thread's work
        # @return [Proc, nil] the same in the recording of the starting thread
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
