# frozen_string_literal: true

module Castellan
  module Instrument
    # Tells which associations were loaded eagerly, and which of them were read: evidence of eager loading that nobody needs.
    #
    #   EagerInstrument.subscribe
    #   Recording.open(Detect::EagerUse.new) { … }
    #   EagerInstrument.unsubscribe
    #
    # Apart from the other instruments, because it is told of every read of an association: {Detect::Evidence} subscribes, for
    # the requests that it looks at. Observers are told by `preloaded(model, association, records)`, by
    # `graphed(associations, records, sent)` of those that came by one JOIN, `sent` being what the observer answered to that before its
    # records were made, and by `used(model, association, how)`, `how` being :read, or :counted where only the number was asked for
    # (ActiveRecord's `size` and `empty?`; Sequel hands out an array, so there it is always :read).
    #
    # The modules are prepended at the first subscription, so only where `evidence:` is asked for.
    module EagerInstrument
      # Prepended to ActiveRecord::Associations::Preloader::Association.
      module Preloads
        def run
          return super if run? || !@associate

          EagerInstrument.preloaded(@reflection.active_record, @reflection.name, owners.size)
          EagerInstrument.passed(@reflection) if @reflection.through_reflection?
          super
        end
      end

      # Prepended to ActiveRecord::Associations::JoinDependency.
      module Graphs
        def instantiate(...)
          sent = EagerInstrument.sent
          super.tap { |records| EagerInstrument.graphed(reflections.map { |one| [one.active_record, one.name] }, records.size, sent) }
        end
      end

      # Prepended to ActiveRecord::Associations::Association.
      module Targets
        # What the application takes without a reader. ActiveRecord asks for it, too, for each record that it loads something for.
        def target
          EagerInstrument.taken_directly(reflection)
          super
        end
      end

      # Prepended to ActiveRecord::Associations::CollectionProxy.
      module ProxyTargets
        def target
          EagerInstrument.used(@association.reflection.active_record, @association.reflection.name, :read)
          super
        end
      end

      # Prepended to ActiveRecord::Associations::SingularAssociation.
      module One
        def reader
          EagerInstrument.used(reflection.active_record, reflection.name, :read)
          super
        end

        # ActiveRecord loads it for purposes of its own, too.
        def load_target
          EagerInstrument.taken_directly(reflection)
          super
        end
      end

      # Prepended to ActiveRecord::Associations::CollectionAssociation.
      module Many
        def load_target
          EagerInstrument.used(reflection.active_record, reflection.name, :read)
          super
        end

        def ids_reader
          EagerInstrument.used(reflection.active_record, reflection.name, :read)
          super
        end

        def include?(record)
          EagerInstrument.used(reflection.active_record, reflection.name, :read)
          super
        end

        def size
          EagerInstrument.used(reflection.active_record, reflection.name, :counted)
          super
        end
      end

      # Prepended to the datasets of Sequel's models.
      module SequelPreloads
        def eager_graph_build_associations(hashes)
          sent = EagerInstrument.sent
          super.tap do
            EagerInstrument.graphed(@opts[:eager_graph][:reflections].values.map { |one| [one[:model], one[:name]] }, hashes.size, sent)
          end
        end

        private

        def eager_load(records, associations = @opts[:eager], model = self.model)
          associations.each_key { |name| EagerInstrument.preloaded(model, name, records.size) } if records.any?
          super
        end
      end

      # Prepended to Sequel::Model.
      module SequelReads
        # What the application takes out of what a record keeps. Sequel asks for it, too, for each record that it loads something for.
        def associations
          kept = super
          EagerInstrument.taken(self.class, kept) if kept.any? && !EagerInstrument.of_sequel?(caller_locations(1, 1))
          kept
        end

        private

        def load_associated_objects(reflection, ...)
          EagerInstrument.used(reflection[:model], reflection[:name], :read)
          super
        end
      end

      LOCK = Mutex.new
      private_constant :LOCK
      @subscriptions = 0

      class << self
        def attached? = @subscriptions.positive?

        # @return [void]
        def subscribe
          LOCK.synchronize do
            @subscriptions += 1
            prepend_to_active_record if defined?(ActiveRecord::Associations::Preloader)
            prepend_to_sequel if defined?(Sequel::Model::Associations)
          end
        end

        # @return [void]
        def unsubscribe
          LOCK.synchronize do
            @subscriptions -= 1 if @subscriptions.positive?
          end
        end

        # Public for the modules above.
        def preloaded(model, association, records)
          each_observer(:preloaded) { |observer| observer.preloaded(model, association, records) }
        end

        # Public for the modules above.
        # @return [Array] of each that is told of graphs, and the statement that it heard of last: to be asked before records are made of it
        def sent
          observers = []
          each_observer(:graphed) { |observer| observers << [observer, observer.sent] }
          observers
        end

        # Public for the modules above.
        # @param sent [Array] see {#sent}
        def graphed(associations, records, sent)
          sent.each { |observer, statement| observer.graphed(associations, records, statement) }
        end

        # Public for the modules above: nobody asked for what lies on the way.
        def passed(reflection)
          [reflection.through_reflection, reflection.source_reflection].each do |part|
            each_observer(:passed) { |observer| observer.passed(part.active_record, part.name) }
          end
        end

        # Public for the modules above.
        def used(model, association, how)
          recording = attached? && Recording.current # no block: it is told of every read
          while recording
            recording.observer.used(model, association, how) if recording.observer.respond_to?(:used)
            recording = recording.parent
          end
        end

        # Public for the modules above.
        # @return [Boolean] whether somebody would learn something from a read of it
        def unread?(reflection)
          recording = attached? && Recording.current # no block: it is asked of every record
          while recording
            observer = recording.observer
            return true if observer.respond_to?(:unread?) && observer.unread?(reflection.active_record, reflection.name)

            recording = recording.parent
          end
          false
        end

        # Public for the modules above, to be called by a method that ActiveRecord calls for purposes of its own, too.
        def taken_directly(reflection)
          return if !unread?(reflection) || of?(caller_locations(2, 1), active_record_folder)

          used(reflection.active_record, reflection.name, :read)
        end

        # Public for the modules above: which of them is read cannot be seen.
        def taken(model, kept)
          reflections = kept.keys.filter_map { |name| model.association_reflection(name) }
          reflections.each { |reflection| used(reflection[:model], reflection[:name], :read) }
        end

        # Public for the modules above. In doubt it is the application that reads, which makes no finding; a read that is overlooked
        # makes a wrong one.
        # @param callers [Array<Thread::Backtrace::Location>, nil] none where Ruby itself calls
        def of_sequel?(callers) = of?(callers, sequel_folder)

        private

        def of?(callers, folder)
          path = callers&.first&.path
          path && folder ? path.start_with?(folder) : false
        end

        def active_record_folder = @active_record_folder ||= ActiveRecord.const_source_location(:VERSION).first&.[](%r{\A.*/active_record/})

        # By a constant, because the application may have wrapped any method.
        def sequel_folder = @sequel_folder ||= Sequel.const_source_location(:VERSION).first&.[](%r{\A.*/sequel/})

        def each_observer(message)
          recording = attached? && Recording.current
          while recording
            yield recording.observer if recording.observer.respond_to?(message)
            recording = recording.parent
          end
        end

        def prepend_to_active_record
          ActiveRecordLoads.attach # first, because it looks at the arity of what it prepends to
          associations = ActiveRecord::Associations
          { associations::Preloader::Association => Preloads, associations::JoinDependency => Graphs, associations::Association => Targets,
            associations::CollectionProxy => ProxyTargets, associations::SingularAssociation => One,
            associations::CollectionAssociation => Many }.each do |type, listener|
            type.prepend(listener) unless type.include?(listener)
          end
        end

        def prepend_to_sequel
          datasets = Sequel::Model::Associations::DatasetMethods
          datasets.prepend(SequelPreloads) unless datasets.include?(SequelPreloads)
          Sequel::Model.prepend(SequelReads) unless Sequel::Model <= SequelReads # `Model.include?` would ask the dataset
        end
      end
    end
  end
end
