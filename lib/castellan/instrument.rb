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
  # Notifies recordings of the statements of ActiveRecord and Sequel, their row counts and their associations.
  #
  #   Instrument.subscribe
  #   Recording.open(Instrument::Counter.new) { User.first }
  #   Instrument.unsubscribe
  #
  #   Instrument.record(Instrument::Counter.new) { User.first }   # all three steps in one
  #
  # Subscriptions are counted: unsubscribe as often as you subscribe. `subscribe` and `record` also attach to
  # libraries that were loaded since. Nothing is prepended before the first subscription or with
  # `CASTELLAN=off`. Two instruments are opt-in: `require "castellan/instrument/threads"` for threads started
  # inside a recording, `require "castellan/instrument/drivers"` for statements sent through pg or sqlite3
  # directly.
  module Instrument
    autoload :EagerInstrument, "castellan/instrument/eager_instrument"

    LOCK = Mutex.new
    private_constant :LOCK
    # The owner passed to {Recording#enter} while an ORM preloads (`preload`, `includes`, `eager`).
    PRELOAD = :preload
    @instruments = [ActiveRecordInstrument, SequelInstrument]
    @subscriptions = 0
    @files = nil # size of $LOADED_FEATURES when last attached

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

      # Adds an opt-in instrument; its file calls this.
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

      # Attaches to libraries that were loaded since the last call. Every observed request calls this, so it
      # returns at once if no file was loaded since.
      # @return [void]
      def attach
        return if $LOADED_FEATURES.size == @files

        LOCK.synchronize do
          next unless subscribed?

          @files = $LOADED_FEATURES.size
          @instruments.each(&:attach)
        end
      end

      # Notifies observers with a `joined` method of records that a JOIN returned in several rows each.
      # @param model [Class]
      # @param rows [Integer]
      # @param records [Integer]
      # @param names [Hash] the tree of joined associations
      # @return [void]
      def joined(model, rows, records, names)
        recording = Recording.current
        while recording
          recording.observer.joined(model, rows, records, names) if recording.observer.respond_to?(:joined)
          recording = recording.parent
        end
      end

      # Subscribes, records the block, and unsubscribes.
      # @param observer [#query] see {Recording#query}
      # @return [Object] the result of the block
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
