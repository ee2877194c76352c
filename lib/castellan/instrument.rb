# frozen_string_literal: true

require_relative "../castellan"
require_relative "recording"
require_relative "call_site"
require_relative "fingerprint"
require_relative "instrument/active_record_instrument"
require_relative "instrument/sequel_instrument"
require_relative "instrument/counter"

module Castellan
  # Notifies recordings of the statements, row counts and association reads of ActiveRecord and Sequel.
  #
  #   Instrument.subscribe
  #   Recording.open(Instrument::Counter.new) { User.first }
  #   Instrument.unsubscribe
  #
  #   Instrument.record(Instrument::Counter.new) { User.first }   # all three steps in one
  #
  # Subscriptions are counted: unsubscribe as often as you subscribe. `subscribe` and `record` also attach to
  # libraries that were loaded in the meantime. Nothing is prepended before the first subscription, or with
  # `CASTELLAN=off`.
  #
  # Two instruments are opt-in: `require "castellan/instrument/threads"` for threads that start inside a
  # recording, and `require "castellan/instrument/drivers"` for statements sent through pg or sqlite3
  # directly. The option `evidence:` subscribes {EagerInstrument}.
  module Instrument
    LOCK = Mutex.new
    private_constant :LOCK
    # The owner in {Recording.read} while an ORM preloads (`preload`, `includes`, `eager`).
    PRELOAD = :preload
    @instruments = [ActiveRecordInstrument, SequelInstrument]
    @subscriptions = 0
    @prepended = []
    @files = nil # the size of $LOADED_FEATURES at the last attach

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

      # Registers an opt-in instrument. The instrument's file calls this.
      # @param instrument [#attach]
      # @return [void]
      def add(instrument)
        LOCK.synchronize do
          @instruments |= [instrument]
          @files = nil
        end
        attach
      end

      def subscribed? = @subscriptions.positive?

      # Attaches to libraries that were loaded since the last call. Returns at once if no file was loaded,
      # because every observed request calls this.
      # @return [void]
      def attach
        return if $LOADED_FEATURES.size == @files

        LOCK.synchronize do
          next unless subscribed?

          @files = $LOADED_FEATURES.size
          @instruments.each(&:attach)
        end
      end

      # Prepends a module to a class once. Skips the class if it lacks one of the module's methods, or takes
      # other parameters, as in another version of the library. Modules that were prepended before do not count.
      # @param hook [Module]
      # @param type [Module]
      # @return [void]
      def prepend(hook, type)
        return if @prepended.include?([hook, type])

        names = hook.instance_methods(false) + hook.private_instance_methods(false)
        return unless names.all? { |name| fits?(hook.instance_method(name), type, name) }

        @prepended << [hook, type]
        type.prepend(hook)
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

      # Notifies the recording of a preload and runs the block, in which the ORM performs it.
      # @param model [Class]
      # @param associations [Object] the ORM's argument
      # @return [Object] the result of the block
      def preload(model, associations, &block)
        Recording.current&.notify(:preloading, model, associations)
        Recording.read(PRELOAD, nil, &block)
      end

      # Counts the rows that a statement returned. As in ActiveRecord's `row_count`, rows that a write changed
      # do not count, but rows of its RETURNING do.
      # @param result [Object] a result of a driver or of ActiveRecord
      # @return [Integer, nil] nil if the rows are read later
      def rows(result)
        return result.size if result.is_a?(Array)
        return result.length if defined?(ActiveRecord::Result) && result.is_a?(ActiveRecord::Result)

        result.ntuples if defined?(PG::Result) && result.is_a?(PG::Result) && !result.cleared?
      end

      private

      def fits?(method, type, name)
        return false unless type.method_defined?(name) || type.private_method_defined?(name)

        method.arity.negative? || method.arity == original(type, name)&.arity
      end

      # The library's own method, without the modules that we and other gems prepended, which may take any arguments.
      # @return [UnboundMethod, nil] nil if only a prepended module has the method
      def original(type, name)
        prepended = type.ancestors.take_while { |one| one != type }
        method = type.instance_method(name)
        method = method.super_method while method && prepended.include?(method.owner)
        method
      end

      def detach
        @files = nil
        ActiveRecordInstrument.detach
      end
    end
  end
end

require_relative "instrument/eager_instrument"
