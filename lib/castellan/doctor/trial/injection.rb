# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # What is done differently while a unit of work runs with its fix: at the line where the parents are loaded something is
      # preloaded, and at the line of the finding an association may be read in another way.
      #
      #   injection = Injection.new(findings)
      #   injection.apply { application.call(env) }   # outside of it the hooks ask one variable and do nothing
      #
      # It belongs to the thread (and its fibers) that runs the work and to those that are started meanwhile, as a recording does. The
      # hooks in the libraries are {ActiveRecordInjection} and {SequelInjection}.
      class Injection
        # A preload at a load: `only` names the class of the records that have the association, where not all do.
        Preload = Struct.new(:location, :model, :tree, :only)
        # Another way to read an association at a line: `way` is :size, :any?, :each, or the name of a declared association.
        # Without a location it is read in that way everywhere.
        Reading = Struct.new(:location, :owner, :association, :way) do
          def here?(location) = self.location.nil? || self.location == location
        end
        private_constant :Preload, :Reading

        LOCK = Mutex.new
        private_constant :LOCK
        @running = 0

        class << self
          # @return [Injection, nil] the one that this thread's work runs under
          def current
            return if @running.zero?

            recording = Recording.current
            recording = recording.parent until recording.nil? || recording.observer.is_a?(self)
            recording&.observer
          end

          # Counted, so that the hooks are idle when nothing is tried.
          def running
            LOCK.synchronize { @running += 1 }
            yield
          ensure
            LOCK.synchronize { @running -= 1 }
          end
        end

        # @param findings [Array<Finding>]
        # @param notes [AtOnce::Notes, nil] of a run without the fix, where look-ups are to be answered at once
        def initialize(findings, notes = nil)
          @preloads = findings.select(&:preload).flat_map { |finding| preloads_of(finding) }.uniq
          @readings = findings.filter_map { |finding| reading(finding) }
          @declarations = findings.filter_map { |finding| declaration_of(finding) }.uniq(&:name)
          @at_once = findings.select { |finding| AtOnce.for?(finding) }.map { |finding| AtOnce.new(finding, notes.of(finding)) }
          @read = {}
          @locations = {}
          @loading = @answering = false
        end

        # Told by {Recording#query}; it counts nothing.
        def query(*); end

        # @return [Injection] the same for a thread that is started meanwhile: what one thread is doing is not what another does
        def strand = dup

        # Runs the block with the fix applied.
        # @return what the block returned
        def apply(&block)
          [ActiveRecordInjection, SequelInjection].each(&:prepare)
          @at_once.each(&:reset)
          within(@declarations) { self.class.running { Recording.open(self, &block) } }
        end

        # What to preload for records that are about to be loaded. Nothing within another load: what a preload loads is not
        # what the fix speaks of, though it is loaded at the same line.
        # @param model [Class]
        # @return [Array<Array(Hash, Class)>] trees, each with the class of the records that it is for
        def preloads(model)
          return [] if @loading || (here = location).nil?

          @preloads.select { |preload| preload.location == here && related?(model, preload.model) }
                   .map { |preload| [preload.tree, preload.only] }
        end

        # @return [Boolean] whether any look-ups are answered at once
        def at_once? = @at_once.any?

        # @param sql [String] a statement that is about to be sent
        # @return [AtOnce, nil] who answers it instead
        def at_once(sql) = (@at_once.find { |one| one.here?(sql, location) } if at_once? && !@answering)

        # Marks what the block sends as sent for the answers.
        def answering
          before = @answering
          @answering = true
          yield
        ensure
          @answering = before
        end

        # Marks what the block does as part of one load.
        def loading
          before = @loading
          @loading = true
          yield
        ensure
          @loading = before
        end

        # @param owner [Class] the model whose association is read
        # @param association [Symbol]
        # @return [Symbol, nil] how to read it here instead
        def way(owner, association)
          return if @loading || @readings.empty? || (here = location).nil?

          reading = @readings.find { |one| one.here?(here) && one.association == association && owner <= one.owner } or return
          @read[reading] = true
          reading.way
        end

        # @return [Boolean] whether look-ups could not be answered at once, because each needs the answer to the one before
        def chained? = @at_once.any?(&:chained?)

        # @return [Boolean] whether there are look-ups to answer, of which none came by where they can be answered
        def unanswered? = @at_once.any? && @at_once.none?(&:answered?)

        # @return [String, nil] a line that should have read an association in another way, but does not read it at all
        def unread = @readings.find { |one| !@read[one] }&.location

        private

        def preloads_of(finding)
          remedy = finding.remedy.to_h
          only = Object.const_get(remedy[:only]) if remedy[:only]
          [finding.parent_location, *remedy[:also]].map do |location|
            Preload.new(location, Object.const_get(finding.parent_model), finding.preload, only)
          end
        end

        def reading(finding)
          way = finding.remedy.to_h[:read] or return

          owner, association = finding.association.split("#")
          Reading.new(finding.location, Object.const_get(owner), association.to_sym, way)
        end

        def declaration_of(finding)
          code = finding.remedy.to_h[:declare] or return

          Declaration.new(Object.const_get(finding.remedy[:in]), code)
        end

        def within(declarations, &block)
          declarations.empty? ? yield : declarations.first.apply { within(declarations.drop(1), &block) }
        end

        def related?(one, other) = one <= other || other <= one || false

        def location
          site = CallSite.current or return
          @locations.fetch(site) { @locations[site] = CallSite.location(site) }
        end
      end
    end
  end
end
