# frozen_string_literal: true

require_relative "clock"

module Castellan
  # What is being recorded right now, and for whom: the only file that knows where "current" lives.
  #
  #   Recording.open(observer) { work }   # => what the block returned; the observer saw every query of the block
  #   Recording.current&.query(sql, name, started_ns, duration_ns, cached, rows)   # what an instrument does
  #
  # Recordings nest: an event reaches the innermost observer first and then each around it, so a test that watches a
  # block inside a request takes nothing away from the middleware around it. Closed in `ensure`, whatever happens.
  #
  # A recording belongs to the thread that opened it and to the fibers which that thread runs (an Enumerator, `Fiber.new`),
  # but under a fiber scheduler to the fiber alone, because there each fiber may be a request of its own. Where Ruby has
  # inherited fiber storage (3.2) that is used, and threads started inside a recording belong to it as well; on 3.1 hand
  # it over: `recording = Recording.current; Thread.new { Recording.resume(recording) { … } }`.
  class Recording
    # What an observer asks to be told, and whether it names another that is to be told. One that is made for each request knows it of
    # its class (`observer.wants`), because to find it out takes longer than all else that a recording does.
    Wants = Struct.new(:listener, :binds, :loads, :accesses, :spans) do
      # @param type [Class]
      # @return [Wants] of its instances
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
      # Records what the block does.
      # @param observer [#query] see {#query} for what it is told
      # @return what the block returns
      def open(observer, &block)
        resume(new(observer, current), &block)
      end

      # Looks into a cache, and tells who records whether it was there; without a recording it only looks.
      # @param layer [Symbol] e.g. :document
      # @yieldreturn [Object, nil] what was found
      # @return what the block returns
      def look(layer)
        recording = current
        return yield unless recording&.watches_spans?

        started_ns = Clock.monotonic_ns
        found = yield
        recording.cache(layer, found ? :hit : :miss, started_ns, Clock.monotonic_ns - started_ns)
        found
      end

      # Does a piece of work that a timeline should show; without a recording it only does it.
      # @param kind [Symbol] :render
      # @param name [String] e.g. the name of a template
      # @return what the block returns
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
      #   Tells whoever wants to know that what follows is the walk through an association of ActiveRecord's. In one call, because it is
      #   made for every association that is read from the database.
      #   @param reflection [#active_record, #name]
      #   @return [#leave, nil] whom to tell when it is over
      # @!method resume(recording)
      #   Makes a recording that was opened elsewhere the current one while the block runs, for a thread or a lazy body that works for it.
      #   @return what the block returns
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

      # Fibers of one thread may end in another order than they began: then what was there before is over.
      def resume(recording)
        return resume_fiber(recording) { yield } if INHERITED || Fiber.scheduler

        thread = Thread.current
        kept = [recording, thread.thread_variable_get(KEY)] # false once its work has ended, and what was kept before
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

    # @return [Object] who is told
    attr_reader :observer
    # @return [Recording, nil] the recording around this one
    attr_reader :parent
    # @return [#query] whom an instrument tells of a statement, as {#query}: this recording, or its observer at once where nobody is
    #   around it, because each call counts there; an observer may name another to be told instead (`observer.listener`)
    attr_reader :listener
    # @return [#enter, nil] whom an instrument tells of a walk, as {#enter} and {#leave}, where somebody wants to know
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

    # @return [Boolean] whether somebody wants to know of {#loaded}; saves an instrument the look at the call site
    def watches_loads? = @wants.loads || (@parent ? @parent.watches_loads? : false)

    # @return [Boolean] whether somebody wants to know of {#enter}
    def watches_accesses? = !@walker.nil?

    # @return [Boolean] whether somebody wants to know of {#cache} and {#span}
    def watches_spans? = @wants.spans || (@parent ? @parent.watches_spans? : false)

    # Tells each observer of a statement that ended. Positional and without an object, because this runs for every query.
    # An observer whose `query` takes a seventh, optional argument is handed the values bound to the statement.
    # @param sql [String]
    # @param name [String, nil] what the ORM calls it, e.g. "User Load"
    # @param started_ns [Integer] monotonic
    # @param duration_ns [Integer]
    # @param cached [Boolean] answered by the ORM's query cache
    # @param rows [Integer, nil]
    # @param binds [Array, nil] never kept by Castellan, only compared
    def query(sql, name, started_ns, duration_ns, cached, rows, binds = nil)
      recording = self
      while recording
        recording.tell(sql, name, started_ns, duration_ns, cached, rows, binds)
        recording = recording.parent
      end
    end

    # Tells each observer that asks for it (`respond_to?(:loaded)`) of records that came from one statement.
    # @param model [String] the name of the class
    # @param count [Integer]
    # @param site [Integer, nil] see {CallSite}
    def loaded(model, count, site)
      @told.loaded(model, count, site) if @wants.loads
      parent&.loaded(model, count, site)
    end

    # Tells each observer that asks for it (`respond_to?(:enter)`) that what follows, until {#leave}, is the walk through
    # an association of a record.
    # @param model [Class] the class that declares it
    # @param association [Symbol]
    def enter(model, association)
      @told.enter(model, association) if @wants.accesses
      parent&.enter(model, association)
    end

    # Ends what {#enter} began.
    def leave
      @told.leave if @wants.accesses
      parent&.leave
    end

    # Tells each observer that asks for it (`respond_to?(:failed)`) that the statement which is told next was refused by the database.
    def failed
      @observer.failed if @observer.respond_to?(:failed)
      parent&.failed
    end

    # Tells each observer that asks for it (`respond_to?(:span)`) of a look into a cache. Keys are not told: they may be personal.
    # @param layer [Symbol] :document, :record, :validator, :http, :rails …
    # @param outcome [Symbol] :hit, :miss, :part (some of several), :write
    # @param started_ns [Integer] monotonic
    # @param duration_ns [Integer]
    def cache(layer, outcome, started_ns, duration_ns)
      @observer.cache(layer, outcome, started_ns, duration_ns) if @wants.spans
      parent&.cache(layer, outcome, started_ns, duration_ns)
    end

    # Tells each observer that asks for it of a piece of work that ended.
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
