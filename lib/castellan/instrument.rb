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
require "castellan/instrument/raw_statement"
require "castellan/instrument/pg_instrument"
require "castellan/instrument/sqlite3_instrument"
require "castellan/instrument/thread_instrument"
require "castellan/instrument/sleep_instrument"
require "castellan/instrument/wait_instrument"
require "castellan/instrument/eager_instrument"
require "castellan/instrument/counter"

module Castellan
  # Tells recordings what the libraries of the application do: which statements ActiveRecord, Sequel and the drivers of pg and
  # sqlite3 send, how many records came back, and through which association they were asked for.
  #
  #   Instrument.subscribe
  #   Recording.open(Instrument::Counter.new) { User.first }
  #   Instrument.unsubscribe
  #
  #   Instrument.record(Instrument::Counter.new) { User.first }   # the same in one
  #
  # Counted: what was subscribed twice must be unsubscribed twice, so a test inside a middleware takes nothing away from
  # it. Attaches to the libraries that are loaded, and to one that is loaded later at the next {attach}, which `subscribe`
  # and `record` call. With `CASTELLAN=off` nothing is attached. Where no recording is open, a statement costs one look
  # at a thread variable.
  module Instrument
    INSTRUMENTS = [ActiveRecordInstrument, SequelInstrument, PgInstrument, Sqlite3Instrument, ThreadInstrument, SleepInstrument,
                   WaitInstrument].freeze
    LOCK = Mutex.new
    private_constant :LOCK
    # Stands for the class in {Recording#enter} where an ORM loads what was named beforehand (`preload`, `includes`, `eager`).
    PRELOAD = :preload
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
          INSTRUMENTS.each(&:attach)
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
        INSTRUMENTS.each(&:detach)
      end
    end
  end
end
