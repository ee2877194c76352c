# frozen_string_literal: true

module Castellan
  module Profile
    # The observer of a profile: keeps every statement with its frames, looks into caches and what was rendered, and lets the detector
    # count along.
    #
    #   recorder = Recorder.new
    #   Instrument.record(recorder) { User.all.each(&:employee) }
    #   recorder.exclusive(:sql)   # => 812_000 nanoseconds
    #
    # A statement costs an array of frames and a few places in a flat array, no object of its own; texts and hashes are made by {QueryRows}
    # when the work is over. Past MOST statements only numbers are kept. A mistake in here must not reach the application: it stops the
    # recorder, and {#failure} says so.
    class Recorder
      MOST = 2_000
      MOST_SPANS = 500
      FRAMES = 8
      # How many places a statement takes in {#log}: text, name, start, duration, rows, cached, frames, owner, association.
      FIELDS = 9

      # @return [Array] see FIELDS
      attr_reader :log
      # @return [Array<Array>] layer, outcome, start, duration
      attr_reader :looks
      # @return [Array<Array>] kind, name, start, duration
      attr_reader :spans
      # @return [Detect::Tally]
      attr_reader :tally
      # @return [Integer] how many statements, looks and spans are not kept
      attr_reader :left_out, :spans_left_out
      # @return [StandardError, nil]
      attr_reader :failure

      def initialize
        @tally = Detect::Tally.new
        @log = []
        @looks = []
        @spans = []
        @around = []
        @owner = @association = nil
        @left_out = @spans_left_out = @view_ns = 0
        @left = { queries: 0, cached_queries: 0, rows: 0 }
        @nesting = Nesting.new
      end

      # Told by {Recording#query}.
      def query(sql, name, started_ns, duration_ns, cached, rows, binds = nil)
        return if @failure

        @tally.query(sql, name, started_ns, duration_ns, cached, rows, binds)
        @nesting.add(:sql, started_ns, duration_ns)
        return leave_out(sql, name, cached, rows) if @log.size >= MOST * FIELDS

        frames = CallSite.frames(FRAMES) # before the first place is taken: what fails must not leave half a statement
        @log << sql << name << started_ns << duration_ns << rows << cached << frames << @owner << @association
      rescue StandardError => error
        @failure = error
      end

      # Told by {Recording#enter}.
      def enter(owner, association)
        @tally.enter(owner, association)
        @around.push(@owner, @association)
        @owner = owner
        @association = association
      end

      # Told by {Recording#leave}.
      def leave
        @tally.leave
        @association = @around.pop
        @owner = @around.pop
      end

      # Told by {Recording#loaded}.
      def loaded(model, count, site) = @tally.loaded(model, count, site)

      # Told by {Recording#cache}.
      def cache(layer, outcome, started_ns, duration_ns)
        @nesting.add(:cache, started_ns, duration_ns)
        keep(@looks, [layer, outcome, started_ns, duration_ns])
      end

      # Told by {Recording#span}. What Rails says of an action's views (:view) has no beginning of its own; see {ViewEvents}.
      def span(kind, name, started_ns, duration_ns)
        return @view_ns += duration_ns if kind == :view

        @nesting.add(kind, started_ns, duration_ns)
        keep(@spans, [kind, name, started_ns, duration_ns])
      end

      # @return [Integer] how many statements there were, of whatever kind
      def seen = (@log.size / FIELDS) + @left_out

      # @param kind [Symbol] :sql, :render or :cache
      # @return [Integer] nanoseconds of that kind, less what happened within of another
      def exclusive(kind)
        own = @nesting.total(kind)
        kind == :render ? [own, @view_ns - @nesting.total(:cache)].max : own
      end

      # @return [Hash{Symbol => Integer}] queries, cached queries and rows of all statements that are work of the application
      def totals
        totals = @left.dup
        @log.each_slice(FIELDS) { |sql, name, _, _, rows, cached| count(totals, sql, name, cached, rows) }
        totals
      end

      # @return [Boolean] whether a statement counts: transactions and what the ORM asks of the schema do not
      def self.work?(sql, name) = !Detect::Shape.of(Fingerprint.of(sql), name).nil?

      private

      def leave_out(sql, name, cached, rows)
        @left_out += 1 if count(@left, sql, name, cached, rows)
      end

      def count(totals, sql, name, cached, rows)
        return unless Recorder.work?(sql, name)

        totals[cached ? :cached_queries : :queries] += 1
        totals[:rows] += rows.to_i
      end

      def keep(list, entry)
        list.size < MOST_SPANS ? list << entry : @spans_left_out += 1
      end
    end
  end
end
