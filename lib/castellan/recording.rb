# frozen_string_literal: true

require_relative "clock"

module Castellan
  # Holds the current recording and passes events (queries, loads, spans) to its observers.
  #
  #   Recording.open(observer) { work }   # => the block's result; the observer receives each of its queries
  #   Recording.current&.listener&.query(sql, name, started_ns, duration_ns, cached, rows, binds)   # in an instrument
  #
  # An observer has the method `query` with these seven arguments. It may also have methods for other events:
  # `loaded`, `enter` and `leave`, `cache` and `span`, and those of {#notify}.
  #
  # Recordings nest: an event goes to the innermost observer first and then to each outer one, so that a test
  # inside a request does not hide events from the middleware.
  #
  # A recording covers its thread and the fibers of the thread (an Enumerator, `Fiber.new`). With a fiber
  # scheduler it covers only its fiber, because each fiber may serve another request. Ruby 3.2 and later
  # inherit fiber storage, so threads that start inside a recording are covered, too. In Ruby 3.1 pass the
  # recording to the thread: `recording = Recording.current; Thread.new { Recording.resume(recording) { … }
  # }`.
  class Recording
    # The owner of statements that only Castellan needs: those of a cache store and checks of a write, see {read}.
    OWN = :own
    KEY = :castellan_recording
    TOGETHER = :castellan_together
    APART = :castellan_apart
    INHERITED = Fiber.respond_to?(:[])
    THREADS = {}.compare_by_identity # for Ruby 3.1: thread => its recording, for the thread's other fibers
    private_constant :KEY, :TOGETHER, :APART, :INHERITED, :THREADS

    class << self
      # Records the block.
      # @param observer [#query] see {#query} for its arguments
      # @return [Object] the result of the block
      def open(observer, &block)
        resume(new(observer, current), &block)
      end

      # Runs a block as a span of the timeline. Without a recording it only calls the block.
      # @param kind [Symbol] :render, :view, or a phase of a document: :plan, :version, :select
      # @param name [String] e.g. the name of a template
      # @return [Object] the result of the block
      def span(kind, name)
        recording = current
        return yield unless recording&.watches_spans?

        started_ns = Clock.monotonic_ns
        begin
          yield
        ensure
          recording.notify(:span, kind, name, started_ns, Clock.monotonic_ns - started_ns)
        end
      end

      # Runs a block as a read of an association, to which the statements in the block then belong. Calls
      # `enter(owner, association)` and `leave` of the observers.
      # @param owner [Class, Symbol] the class that declares the association; {Instrument::PRELOAD} for the
      #   statements of a preload, {OWN} for statements that are not the application's
      # @param association [Symbol, nil]
      # @return [Object] the result of the block
      def read(owner, association)
        recording = current
        return yield unless recording&.watches_reads?

        listener = recording.listener
        listener.enter(owner, association)
        begin
          yield
        ensure
          listener.leave
        end
      end

      # @param type [Class]
      # @return [Object, nil] the innermost observer of this type
      def innermost(type)
        recording = current
        recording = recording.parent until recording.nil? || recording.observer.is_a?(type)
        recording&.observer
      end

      # @return [Rows::Together, false, nil] the document that this fiber renders; false if its records load
      #   associations one by one, nil if it renders no document
      def together = Thread.current[TOGETHER]

      # Sets the document that this fiber renders during the block.
      # @return [Object] the result of the block
      def render_together(together)
        before = Thread.current[TOGETHER]
        Thread.current[TOGETHER] = together
        yield
      ensure
        Thread.current[TOGETHER] = before
      end

      # @return [Integer] nanoseconds that blocks of {apart} have taken in this fiber
      def apart_ns = Thread.current[APART] || 0

      # Adds the time of the block to {apart_ns}; that of an inner block is part of it. For a block of the application
      # that the driver calls inside of a statement.
      # @return [Object] the result of the block
      def apart
        before = apart_ns
        started_ns = Clock.monotonic_ns
        yield
      ensure
        Thread.current[APART] = before + Clock.monotonic_ns - started_ns
      end

      # @!method current
      #   @return [Recording, nil]
      # @!method resume(recording)
      #   Sets the current recording during the block, for a thread or lazy body that belongs to the recording.
      #   @return [Object] the result of the block
      if INHERITED
        def current = Fiber[KEY]

        def resume(recording)
          before = Fiber[KEY]
          Fiber[KEY] = recording
          yield
        ensure
          Fiber[KEY] = before
        end
      else
        # The fiber's own recording, which is faster to read, or else that of the thread.
        def current = Thread.current[KEY] || (of_thread unless THREADS.empty?)

        def resume(recording, &block)
          thread = Thread.current
          before = thread[KEY]
          thread[KEY] = recording
          Fiber.scheduler ? yield : with_thread(thread, recording, &block)
        ensure
          thread[KEY] = before
        end

        private

        def of_thread
          opened = THREADS[Thread.current]
          opened.first if opened && !Fiber.scheduler
        end

        # Fibers of a thread may end in any order, so this restores the nearest outer recording that is still
        # open.
        def with_thread(thread, recording)
          opened = [recording, THREADS[thread]] # the recording, or false after its end; then the outer pair
          THREADS[thread] = opened
          yield
        ensure
          before = opened.last
          before = before.last while before && before.first == false
          opened.replace([false, before])
          before ? THREADS[thread] = before : THREADS.delete(thread)
        end
      end
    end

    # @return [Object] the observer of the events
    attr_reader :observer
    # @return [Recording, nil] the outer recording
    attr_reader :parent
    # @return [#query] the object that instruments notify: the recording, or without an outer recording the
    #   observer itself, which saves a call per statement
    attr_reader :listener

    def initialize(observer, parent)
      @observer = observer
      @parent = parent
      @listener = parent ? self : observer
      @loads = observer.respond_to?(:loaded)
      @reads = observer.respond_to?(:enter)
      @spans = observer.respond_to?(:span)
      freeze
    end

    # @return [Boolean] whether an observer has `loaded`; if not, instruments need not find the call site
    def watches_loads? = @loads || (@parent ? @parent.watches_loads? : false)

    # @return [Boolean] whether an observer has `enter`
    def watches_reads? = @reads || (@parent ? @parent.watches_reads? : false)

    # @return [Boolean] whether an observer has `span`
    def watches_spans? = @spans || (@parent ? @parent.watches_spans? : false)

    # Notifies each observer of a finished statement. Positional arguments, because they allocate nothing.
    # @param sql [String]
    # @param name [String, nil] the ORM's name for the statement, e.g. "User Load"
    # @param started_ns [Integer] monotonic
    # @param duration_ns [Integer]
    # @param cached [Boolean] whether the ORM's query cache answered it
    # @param rows [Integer, nil]
    # @param binds [Array, nil] the bound values
    def query(sql, name, started_ns, duration_ns, cached, rows, binds)
      @observer.query(sql, name, started_ns, duration_ns, cached, rows, binds)
      @parent&.query(sql, name, started_ns, duration_ns, cached, rows, binds)
    end

    # Notifies each observer that has `loaded` of the records of a statement.
    # @param model [String] the name of the class
    # @param count [Integer] the number of records
    # @param site [Integer, nil] see {CallSite}
    def loaded(model, count, site)
      @observer.loaded(model, count, site) if @loads
      @parent&.loaded(model, count, site)
    end

    # Notifies each observer that has `enter` of the start of an association read, which lasts until {#leave}.
    # Use {Recording.read} instead.
    # @param owner [Class, Symbol]
    # @param association [Symbol, nil]
    def enter(owner, association)
      @observer.enter(owner, association) if @reads
      @parent&.enter(owner, association)
    end

    # Notifies each observer that has `enter` of the end of the read.
    def leave
      @observer.leave if @reads
      @parent&.leave
    end

    # Calls the method `event` of each observer that has it. The events are:
    # - `failed`: the database rejected the statement that is reported next
    # - `preloading(model, associations)`: the ORM preloads these associations (its own argument) for the
    #   model
    # - `joining`: the last statement is a JOIN whose records are about to be made
    # - `joined(model, rows, records, names)`: a JOIN returned records of several tables; `names` is the tree
    #   of the joined associations
    # - `cache(layer, outcome, started_ns, duration_ns, bytes = nil, age =
    #   nil)`: a cache was read or written; the outcome is :hit, :miss, :part (some of several), :write, or
    #   one of {Cache::Events}; `age` is in seconds. Without the key, because it may contain personal data
    # - `keyed(rendering, key)`: a document computed its cache key (nil: it is not cached)
    # - `fetched(key, tables, digest)`: `Castellan.cache.fetch` was called; `digest` is nil if nothing is
    #   cached
    # - `unstored(reason)`: {HTTPCache} did not store a response
    # - `span(kind, name, started_ns, duration_ns)`: a rendering ended
    # - `apart(block_ns)`: the next statement ran a block, whose time its duration does not contain
    # - the events of {Instrument::EagerInstrument}
    # @param event [Symbol]
    def notify(event, *arguments)
      @observer.public_send(event, *arguments) if @observer.respond_to?(event)
      @parent&.notify(event, *arguments)
    end
  end
end
