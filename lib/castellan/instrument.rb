# frozen_string_literal: true

require "castellan"
require "castellan/recording"
require "castellan/call_site"
require "castellan/fingerprint"
require "castellan/instrument/active_record_instrument"
require "castellan/instrument/sequel_instrument"
require "castellan/instrument/row_count"
require "castellan/instrument/active_record_rows"
require "castellan/instrument/active_record_loads"
require "castellan/instrument/counter"

module Castellan
  # Notifies recordings of the statements that ActiveRecord and Sequel send, of how many records came back, and of the association
  # through which they were asked for.
  #
  #   Instrument.subscribe
  #   Recording.open(Instrument::Counter.new) { User.first }
  #   Instrument.unsubscribe
  #
  #   Instrument.record(Instrument::Counter.new) { User.first }   # the same in one
  #
  # Subscriptions are counted: unsubscribe as often as you subscribe. A library that is loaded later is attached to at the next
  # {attach}, which `subscribe` and `record` call. Nothing is prepended before the first subscription, and nothing is attached
  # with `CASTELLAN=off`. Two more instruments are opt-in: `require "castellan/instrument/threads"` for threads that are started
  # inside a recording, `require "castellan/instrument/drivers"` for statements that an application sends through pg or sqlite3 itself.
  module Instrument
    autoload :EagerInstrument, "castellan/instrument/eager_instrument"

    LOCK = Mutex.new
    private_constant :LOCK
    # Stands for the class in {Recording#enter} where an ORM loads what was named beforehand (`preload`, `includes`, `eager`).
    PRELOAD = :preload
    @instruments = [ActiveRecordInstrument, SequelInstrument]
    @subscriptions = 0
    @files = nil # how many were loaded when all that was there was attached to

    class << self
      # @return [void]
      def subscribe
        return if Castellan.off?

        LOCK.synchronize { @subscriptions += 1 }
        attach
      end

      # @return [void]
      def unsubscribe
        LOCK.synchronize do
          next if @subscriptions.zero?

          @subscriptions -= 1
          detach if @subscriptions.zero?
        end
      end

      # Adds an instrument that is opt-in; called by its file.
      # @param instrument [#attach, #detach]
      # @return [void]
      def add(instrument)
        LOCK.synchronize do
          @instruments |= [instrument]
          @files = nil
        end
        attach
      end

      # @return [Boolean]
      def subscribed? = @subscriptions.positive?

      # Attaches to what has been loaded since. Asked for at every request that is watched or profiled, by {Detect::Production}
      # at one in sixteen, so it looks no further where no file was loaded: to ask each instrument calls twenty methods, whose code the
      # request before has pushed out of the caches of the processor.
      # @return [void]
      def attach
        return if $LOADED_FEATURES.size == @files

        LOCK.synchronize do
          next unless subscribed?

          @files = $LOADED_FEATURES.size
          @instruments.each(&:attach)
        end
      end

      # Tells the observers that ask for it (`respond_to?(:joined)`) of records that came by a JOIN, each in several rows.
      # @param model [Class]
      # @param rows [Integer]
      # @param records [Integer]
      # @param names [Hash] the tree of associations that came with them
      # @return [void]
      def joined(model, rows, records, names)
        recording = Recording.current
        while recording
          recording.observer.joined(model, rows, records, names) if recording.observer.respond_to?(:joined)
          recording = recording.parent
        end
      end

      # Subscribes, records what the block does, and unsubscribes.
      # @param observer [#query] see {Recording#query}
      # @return what the block returns
      def record(observer, &block)
        return yield if Castellan.off?

        subscribe
        begin
          Recording.open(observer, &block)
        ensure
          unsubscribe
        end
      end

      private

      def detach
        @files = nil
        @instruments.each(&:detach)
      end
    end
  end
end
