# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # Applies the fixes of findings while work runs: preloads associations where their owners are loaded.
      #
      #   Injection.new(findings, loads).apply { application.call(env) }
      #
      # For a fix that declares a scoped association, loads its records together with the owners, and returns
      # them at the call site. Applies in the current thread, its fibers, and threads that start meanwhile,
      # like a recording. {ActiveRecordInjection} and {SequelInjection} hook it into the ORMs.
      class Injection
        # A preload at a call site.
        # With a declaration ({Finding}), the last association of the path is not preloaded: one of its
        # records is chosen.
        Preload = Struct.new(:locations, :model, :tree, :declaration, :read_at, :fingerprint) do
          # @return [Array<Symbol>] the path to the owners of the declared association
          def path = Detect::Preload.names(tree)[0...-1]
        end
        LOCK = Mutex.new
        private_constant :Preload, :LOCK
        @running = 0

        class << self
          # @return [Injection, nil] the injection of the current thread
          def current = (Recording.innermost(self) unless @running.zero?)

          # Counts running injections, so that the hooks return early without one.
          def running
            LOCK.synchronize { @running += 1 }
            yield
          ensure
            LOCK.synchronize { @running -= 1 }
          end
        end

        # @param findings [Array<Finding>]
        # @param loads [Array<Array(String, String)>] models, and the call sites that loaded them without the
        #   fix
        def initialize(findings, loads)
          @preloads = findings.map { |finding| preload_of(finding, loads) }.uniq
          @chosen = {}.compare_by_identity
          @locations = {}
          @several = {}
          @loading = false
        end

        # (see Recording#query)
        def query(*); end

        # @return [Injection] a copy for a thread that starts meanwhile, because `@loading` belongs to one
        #   thread
        def strand = dup

        # @return [Finding, nil] a finding whose records were not loaded in the run
        def lost(findings) = findings.zip(@preloads).find { |_, preload| preload && preload.locations.empty? }&.first

        # Runs the block with the fixes applied.
        # @return the result of the block
        def apply(&block)
          @chosen.clear
          [ActiveRecordInjection, SequelInjection].each(&:prepare)
          self.class.running { Recording.open(self, &block) }
        end

        # The preloads for records that the current call site is about to load. Empty inside of another load,
        # because the queries of a preload have the same call site.
        # @return [Array<Preload>]
        def preloads(model)
          return [] if @loading || (here = location).nil?

          @preloads.select { |preload| preload.locations.include?(here) && related?(model, preload.model) }
        end

        # Marks the block as a load, see {#preloads}.
        def loading
          before = @loading
          @loading = true
          yield
        ensure
          @loading = before
        end

        # @param orm [ActiveRecordInjection, SequelInjection]
        def preload(orm, records, preloads)
          loading do
            preloads.each do |preload|
              next orm.load(records, preload.tree) unless preload.declaration

              orm.load(records, Detect::Preload.path(preload.path))
              owners = preload.path.reduce(records) { |all, name| all.flat_map { |owner| orm.targets(owner, name) } }
              choose(orm, preload, owners.uniq)
            end
          end
        end

        # @param owner [Object] a record whose association is read
        # @param association [Symbol]
        # @yieldreturn [String] the statement; only needed if the line reads the association several times
        # @return [Array, nil] the chosen record, or an empty Array, for the current call site; nil if none
        #   was looked for
        def chosen(owner, association)
          known = @chosen[owner]
          return if known.nil? || @loading || (here = location).nil?

          asked = Fingerprint.of(yield) if several?(association)
          known.find do |preload, _records|
            preload.declaration[:association] == association && [nil, here].include?(preload.read_at) &&
              [nil, preload.fingerprint].include?(asked)
          end&.last&.dup
        end

        private

        def choose(orm, preload, owners)
          declaration = preload.declaration
          association = orm.association(Object.const_get(declaration[:in]), declaration[:association])
          held, key = association.values_at(:held, :key)
          found = association[:model].where(key => owners.map { |owner| owner[held] }, **association[:conditions])
          found = found.instance_eval(declaration[:scope], __FILE__, __LINE__) unless declaration[:scope].empty?
          found = orm.first_of_each(found, key, declaration[:scope])
          records = found.to_a.group_by { |record| record[key] }
          owners.each { |owner| (@chosen[owner] ||= {})[preload] = records.fetch(owner[held], []).first(1) }
        end

        # If the work was written again (for example in a test), its records load at another line than the
        # finding's. Then the only load of the same model is used.
        def preload_of(finding, loads)
          model = Object.const_get(finding.parent_model)
          locations = [finding.parent_location, *finding.also]
          read_at = finding.location
          if finding.parent_count && !locations.intersect?(loads.map(&:last))
            locations = loads.select { |name, _location| related?(Object.const_get(name), model) }.map(&:last).uniq
            locations = [] unless locations.one?
            read_at = nil
          end
          Preload.new(locations, model, finding.preload, finding.declaration, read_at, finding.fingerprint)
        end

        # Whether the current line reads the association more than once: `[user.posts.first, user.posts.last]`.
        def several?(association)
          lines = @several[association] ||= {}
          site = CallSite.current
          lines.fetch(site) { lines[site] = Detect::Source.at(site).steps(association, :"#{association}_dataset").size > 1 }
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
