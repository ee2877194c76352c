# frozen_string_literal: true

require_relative "clock"

module Castellan
  # Holds the current recording and passes events (queries, loads, spans) to its observers.
  #
  #   Recording.open(observer) { work }   # => the block's result; the observer receives each of its queries
  #   Recording.current&.query(sql, name, started_ns, duration_ns, cached, rows)   # called by an instrument
  #
  # Recordings nest: an event reaches the innermost observer first, then each outer one, so a test inside a
  # request does not hide events from the middleware.
  #
  # A recording covers the thread that opened it and the thread's fibers (an Enumerator, `Fiber.new`); under a
  # fiber scheduler only the fiber, because each fiber may serve another request. Ruby 3.2 and later use
  # inherited fiber storage, which also covers threads started inside a recording. On 3.1 pass it to a thread:
  # `recording = Recording.current; Thread.new { Recording.resume(recording) { … } }`.
  class Recording
    # The optional events that an observer implements, and whether it names another listener. Observers
    # created per request compute them once per class (`observer.wants`), because detecting them costs more
    # than everything else that a recording does.
    Wants = Struct.new(:listener, :binds, :loads, :accesses, :spans) do
      # @param type [Class]
      # @return [Wants] for its instances
      def self.of_class(type)
        listener, *rest = MESSAGES.map { |name| type.method_defined?(name) }
        new(listener, type.instance_method(:query).arity == -7, *rest).freeze
      end

      # @param observer [#query]
      # @return [Wants]
      def self.of(observer)
        listener, *rest = MESSAGES.map { |name| observer.respond_to?(name) }
        new(listener, observer.method(:query).arity == -7, *rest)
      end
    end
    MESSAGES = %i[listener loaded enter span].freeze
    private_constant :MESSAGES

    KEY = :castellan_recording
    INHERITED = Fiber.respond_to?(:[])
    private_constant :KEY, :INHERITED

    class << self
      # Records the block.
      # @param observer [#query] see {#query} for its arguments
      # @return [Object] the result of the block
      def open(observer, &block)
        resume(new(observer, current), &block)
      end

      # Reads a cache and notifies the observers of the hit or miss; without a recording it only calls the
      # block.
      # @param layer [Symbol] e.g. :document
      # @yieldreturn [Object, nil] the cached value
      # @return [Object, nil] the result of the block
      def look(layer)
        recording = current
        return yield unless recording&.watches_spans?

        started_ns = Clock.monotonic_ns
        found = yield
        recording.cache(layer, found ? :hit : :miss, started_ns, Clock.monotonic_ns - started_ns)
        found
      end

      # Runs a block as a span of the timeline; without a recording it only calls the block.
      # @param kind [Symbol] :render
      # @param name [String] e.g. the name of a template
      # @return [Object] the result of the block
      def span(kind, name)
        recording = current
        return yield unless recording&.watches_spans?

        started_ns = Clock.monotonic_ns
        begin
          yield
        ensure
          recording.span(kind, name, started_ns, Clock.monotonic_ns - started_ns)
        end
      end

      # @!method current
      #   @return [Recording, nil]
      # @!method walk(reflection)
      #   Notifies the observers that a read of an ActiveRecord association begins. This is one call, because
      #   it runs for each association that is read from the database.
      #   @param reflection [#active_record, #name]
      #   @return [#leave, nil] call `leave` on it at the end of the read
      # @!method resume(recording)
      #   Makes a recording the current one during the block, in a thread or lazy body that works for it.
      #   @return [Object] the result of the block
      if INHERITED
        def current = Fiber[KEY]
      else
        def current
          kept = Fiber.scheduler ? (return Thread.current[KEY]) : Thread.current.thread_variable_get(KEY)
          kept[0] if kept
        end
      end

      def walk(reflection)
        walker = current&.walker
        walker&.enter(reflection.active_record, reflection.name)
        walker
      end

      # Fibers of one thread may end in any order, so restore the nearest outer recording that is still open.
      def resume(recording)
        return resume_fiber(recording) { yield } if INHERITED || Fiber.scheduler

        thread = Thread.current
        kept = [recording, thread.thread_variable_get(KEY)] # false after its end; the outer one
        begin
          thread.thread_variable_set(KEY, kept)
          yield
        ensure
          before = kept.last
          before = before.last while before && before.first == false
          kept.replace([false, before])
          thread.thread_variable_set(KEY, before)
        end
      end

      private

      def resume_fiber(recording)
        place = INHERITED ? Fiber : Thread.current
        before = place[KEY]
        begin
          place[KEY] = recording
          yield
        ensure
          place[KEY] = before
        end
      end
    end

    # @return [Object] the observer that receives the events
    attr_reader :observer
    # @return [Recording, nil] the outer recording
    attr_reader :parent
    # @return [#query] the object that instruments notify of a statement, see {#query}: this recording, or, to
    #   save a call per statement, the observer itself if there is no outer recording. An observer may name
    #   another object (`observer.listener`)
    attr_reader :listener
    # @return [#enter, #leave, nil] the object that instruments notify of association reads; nil if no
    #   observer listens
    attr_reader :walker

    def initialize(observer, parent)
      @observer = observer
      @parent = parent
      @wants = wants = observer.respond_to?(:wants) ? observer.wants : Wants.of(observer)
      @told = told = wants.listener ? observer.listener : observer
      @listener = wants.binds && parent.nil? ? told : self
      @walker = parent ? self : told if wants.accesses || parent&.watches_accesses?
      freeze
    end

    # @return [Boolean] whether an observer listens to {#loaded}; if not, instruments skip finding the call
    #   site
    def watches_loads? = @wants.loads || (@parent ? @parent.watches_loads? : false)

    # @return [Boolean] whether an observer listens to {#enter}
    def watches_accesses? = !@walker.nil?

    # @return [Boolean] whether an observer listens to {#cache} and {#span}
    def watches_spans? = @wants.spans || (@parent ? @parent.watches_spans? : false)

    # Notifies each observer of a finished statement. The arguments are positional, to allocate nothing per
    # query. An observer whose `query` takes seven arguments also receives the bound values.
    # @param sql [String]
    # @param name [String, nil] the ORM's name of the statement, e.g. "User Load"
    # @param started_ns [Integer] monotonic
    # @param duration_ns [Integer]
    # @param cached [Boolean] whether the ORM's query cache answered it
    # @param rows [Integer, nil]
    # @param binds [Array, nil] the bound values
    def query(sql, name, started_ns, duration_ns, cached, rows, binds = nil)
      recording = self
      while recording
        recording.tell(sql, name, started_ns, duration_ns, cached, rows, binds)
        recording = recording.parent
      end
    end

    # Notifies each observer with a `loaded` method of the records of one statement.
    # @param model [String] the name of the class
    # @param count [Integer] the number of records
    # @param site [Integer, nil] see {CallSite}
    def loaded(model, count, site)
      @told.loaded(model, count, site) if @wants.loads
      parent&.loaded(model, count, site)
    end

    # Notifies each observer with an `enter` method that a read of an association begins; it lasts until
    # {#leave}.
    # @param model [Class] the class that declares the association
    # @param association [Symbol]
    def enter(model, association)
      @told.enter(model, association) if @wants.accesses
      parent&.enter(model, association)
    end

    # Notifies the observers that the read begun by {#enter} ended.
    def leave
      @told.leave if @wants.accesses
      parent&.leave
    end

    # Notifies each observer with a `failed` method that the database rejected the next reported statement.
    def failed
      @observer.failed if @observer.respond_to?(:failed)
      parent&.failed
    end

    # Notifies each observer with a `span` method of a cache read or write. Omits keys, because they may be
    # personal.
    # @param layer [Symbol] :document, :record, :validator, :http, :rails …
    # @param outcome [Symbol] :hit, :miss, :part (some of several), :write
    # @param started_ns [Integer] monotonic
    # @param duration_ns [Integer]
    def cache(layer, outcome, started_ns, duration_ns)
      @observer.cache(layer, outcome, started_ns, duration_ns) if @wants.spans
      parent&.cache(layer, outcome, started_ns, duration_ns)
    end

    # Notifies each observer with a `span` method of a finished span.
    # @param kind [Symbol] :render
    # @param name [String]
    # @param started_ns [Integer] monotonic
    # @param duration_ns [Integer]
    def span(kind, name, started_ns, duration_ns)
      @observer.span(kind, name, started_ns, duration_ns) if @wants.spans
      parent&.span(kind, name, started_ns, duration_ns)
    end

    protected

    def tell(sql, name, started_ns, duration_ns, cached, rows, binds)
      if @wants.binds
        @told.query(sql, name, started_ns, duration_ns, cached, rows, binds)
      else
        @told.query(sql, name, started_ns, duration_ns, cached, rows)
      end
    end
  end
end
