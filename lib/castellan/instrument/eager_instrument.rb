# frozen_string_literal: true

module Castellan
  module Instrument
    # Notifies recordings of eagerly loaded associations and of reads of associations, to find eager loads that
    # are never read.
    #
    #   EagerInstrument.subscribe
    #   Recording.open(Detect::EagerUse.new) { … }
    #   EagerInstrument.unsubscribe
    #
    # Separate from the other instruments, because every read of an association costs something: only
    # {Detect::Evidence} (`evidence:`) subscribes, for the requests that it samples. The modules are prepended at
    # the first subscription. The events ({Recording#notify}):
    #
    # - `preloaded(model, association, records)`
    # - `passed(model, association)`: loaded only as the way to another one
    # - `used(model, association)`
    module EagerInstrument
      # Prepended to ActiveRecord::Associations::Preloader::Association.
      module Preloads
        def run
          EagerInstrument.preloaded(@reflection, owners.size) if !run? && @associate
          super
        end
      end

      # Prepended to ActiveRecord::Associations::Association. ActiveRecord calls it for itself, too.
      module Targets
        def target
          EagerInstrument.used_directly(reflection)
          super
        end
      end

      # Prepended to ActiveRecord::Associations::CollectionProxy.
      module ProxyTargets
        def target
          EagerInstrument.used(@association.reflection)
          super
        end
      end

      # Prepended to ActiveRecord::Associations::SingularAssociation.
      module One
        def reader
          EagerInstrument.used(reflection)
          super
        end

        # ActiveRecord calls it for itself, too.
        def load_target
          EagerInstrument.used_directly(reflection)
          super
        end
      end

      # Prepended to ActiveRecord::Associations::CollectionAssociation.
      module Many
        %i[load_target ids_reader include? size].each do |name|
          define_method(name) do |*arguments|
            EagerInstrument.used(reflection)
            super(*arguments)
          end
        end
      end

      # Prepended to the datasets of Sequel's models.
      module SequelPreloads
        private

        def eager_load(records, associations = @opts[:eager], model = self.model)
          associations.each_key { |name| EagerInstrument.notify(:preloaded, model, name, records.size) } if records.any?
          super
        end
      end

      # Prepended to Sequel::Model.
      module SequelReads
        # The kept associations of a record. Sequel calls it for itself, too.
        def associations
          kept = super
          EagerInstrument.kept_read(self.class, kept) if kept.any?
          kept
        end

        private

        def load_associated_objects(reflection, ...)
          EagerInstrument.notify(:used, reflection[:model], reflection[:name])
          super
        end
      end

      LOCK = Mutex.new
      private_constant :LOCK
      @subscriptions = 0

      class << self
        # @return [Boolean] whether it notifies recordings
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
          LOCK.synchronize { @subscriptions -= 1 if @subscriptions.positive? }
        end

        # Public for the modules above, like the methods below.
        def notify(event, *arguments)
          Recording.current&.notify(event, *arguments) if attached?
        end

        # @param reflection [Object] of ActiveRecord
        def used(reflection) = notify(:used, reflection.active_record, reflection.name)

        # A read, unless ActiveRecord's own code is the caller's caller.
        def used_directly(reflection)
          used(reflection) if attached? && Recording.current && !library?(caller_locations(2, 1), active_record_folder)
        end

        def preloaded(reflection, records)
          notify(:preloaded, reflection.active_record, reflection.name, records)
          return unless reflection.through_reflection?

          [reflection.through_reflection, reflection.source_reflection].each { |one| notify(:passed, one.active_record, one.name) }
        end

        # A read of all kept associations, unless Sequel's own code is the caller's caller.
        def kept_read(model, kept)
          return if !attached? || Recording.current.nil? || library?(caller_locations(2, 1), sequel_folder)

          reflections = kept.keys.filter_map { |name| model.association_reflection(name) }
          reflections.each { |reflection| notify(:used, reflection[:model], reflection[:name]) }
        end

        private

        # If in doubt the application reads, because a missed read makes a wrong finding.
        # @param callers [Array<Thread::Backtrace::Location>, nil] nil if Ruby itself is the caller
        def library?(callers, folder)
          path = callers&.first&.path
          path && folder ? path.start_with?(folder) : false
        end

        # The folders are found by a constant, because the application may have wrapped any method.
        def active_record_folder = @active_record_folder ||= ActiveRecord.const_source_location(:VERSION).first&.[](%r{\A.*/active_record/})

        def sequel_folder = @sequel_folder ||= Sequel.const_source_location(:VERSION).first&.[](%r{\A.*/sequel/})

        def prepend_to_active_record
          associations = ActiveRecord::Associations
          { associations::Preloader::Association => Preloads, associations::Association => Targets,
            associations::CollectionProxy => ProxyTargets, associations::SingularAssociation => One,
            associations::CollectionAssociation => Many }.each { |type, hook| Instrument.prepend(hook, type) }
        end

        def prepend_to_sequel
          Instrument.prepend(SequelPreloads, Sequel::Model::Associations::DatasetMethods)
          Instrument.prepend(SequelReads, Sequel::Model)
        end
      end
    end
  end
end
