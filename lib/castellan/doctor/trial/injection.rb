# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # Applies the fixes of findings while a unit of work runs: preloads where the owners are loaded, and answers a line from records that
      # were chosen there, as an association with a scope would.
      #
      #   Injection.new(findings, loads).apply { application.call(env) }   # outside of it the hooks ask one variable and do nothing
      #
      # It belongs to the thread (and its fibers) that runs the work and to those that are started meanwhile, as a recording does. The
      # hooks in the libraries are {ActiveRecordInjection} and {SequelInjection}.
      class Injection
        # A preload at a load. With a declaration the last association of the path is not preloaded but chosen, see {Finding}.
        Preload = Struct.new(:locations, :model, :tree, :declaration, :read_at)
        LOCK = Mutex.new
        private_constant :Preload, :LOCK
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
        # @param loads [Array<Array(String, String)>] models and locations of the run without the fix
        def initialize(findings, loads)
          @preloads = findings.map { |finding| preload_of(finding, loads) }.uniq
          @chosen = {}.compare_by_identity
          @locations = {}
          @loading = false
        end

        # (see Recording#query)
        def query(*); end

        # @return [Injection] the same for a thread that is started meanwhile: what one thread is doing is not what another does
        def strand = dup

        # @return [Finding, nil] one whose records were loaded nowhere in the run
        def lost(findings) = findings.zip(@preloads).find { |_finding, preload| preload && preload.locations.empty? }&.first

        # Runs the block with the fixes applied.
        # @return what the block returned
        def apply(&block)
          @chosen.clear
          [ActiveRecordInjection, SequelInjection].each(&:prepare)
          self.class.running { Recording.open(self, &block) }
        end

        # What to preload for records that are about to be loaded. Nothing within another load: what a preload loads at the same line is
        # not meant.
        # @param model [Class]
        # @return [Array<Preload>]
        def preloads(model)
          return [] if @loading || (here = location).nil?

          @preloads.select { |preload| preload.locations.include?(here) && related?(model, preload.model) }
        end

        # Marks what the block does as part of one load.
        def loading
          before = @loading
          @loading = true
          yield
        ensure
          @loading = before
        end

        # Chooses the records of a declaration for owners that were loaded.
        # @yield [preload, owners] gives the records that belong to each owner
        # @return [void]
        def choose(preload, owners)
          owners = owners.uniq
          found = yield(preload, owners)
          owners.each do |owner|
            all = found.fetch(owner, [])
            (@chosen[owner] ||= {})[preload] = preload.declaration[:single] ? all.first(1) : all
          end
        end

        # @param owner [Object] a record whose association is read
        # @param association [Symbol]
        # @return [Array, nil] what was chosen for this line
        def chosen(owner, association)
          known = @chosen[owner]
          return if known.nil? || @loading || (here = location).nil?

          known.find { |preload, _records| preload.declaration[:association] == association && [nil, here].include?(preload.read_at) }&.last
        end

        private

        # A work that was written down again loads at another line than the one that the finding is of.
        def preload_of(finding, loads)
          model = Object.const_get(finding.parent_model)
          locations = [finding.parent_location, *finding.also]
          read_at = finding.location
          if finding.parent_count && !locations.intersect?(loads.map(&:last))
            locations = loads.select { |name, _location| related?(Object.const_get(name), model) }.map(&:last).uniq
            locations = [] unless locations.one?
            read_at = nil
          end
          Preload.new(locations, model, finding.preload, finding.declaration, read_at)
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
