# frozen_string_literal: true

module Castellan
  module Instrument
    # Notifies recordings of eager loads and association reads, to find eager loads that are never read.
    #
    #   EagerInstrument.subscribe
    #   Recording.open(Detect::Evidence::Use.new) { … }
    #   EagerInstrument.unsubscribe
    #
    # Observing every read of an association is expensive, so only {Detect::Evidence} (`evidence:`)
    # subscribes, and only during the requests that it samples. The modules are prepended at the first
    # subscription. The events ({Recording#notify}) are:
    #
    # - `preloaded(model, association, records)`
    # - `passed(model, association)`: loaded only to reach another association
    # - `used(model, association)`
    module EagerInstrument
      # @return [Module] reports a read when one of these methods is called
      def self.reads(*names)
        Module.new do
          names.each do |name|
            define_method(name) do |*arguments|
              EagerInstrument.used(reflection)
              super(*arguments)
            end
          end
        end
      end

      # @return [Module] for a method that ActiveRecord calls as well; only calls from elsewhere are reads
      def self.direct_reads(name)
        Module.new do
          define_method(name) do
            EagerInstrument.used_directly(reflection)
            super()
          end
        end
      end
      private_class_method :reads, :direct_reads

      # For ActiveRecord::Associations::Preloader::Association.
      module Preloads
        def run
          EagerInstrument.preloaded(@reflection, owners.size) if !run? && @associate
          super
        end
      end

      # For ActiveRecord::Associations::CollectionProxy.
      module ProxyTargets
        def target
          EagerInstrument.used(@association.reflection)
          super
        end
      end

      # For the datasets of Sequel models.
      module SequelPreloads
        private

        def eager_load(records, associations = @opts[:eager], model = self.model)
          associations.each_key { |name| EagerInstrument.notify(:preloaded, model, name, records.size) } if records.any?
          super
        end
      end

      # For Sequel::Model.
      module SequelReads
        # The loaded associations of a record. Sequel calls this method as well.
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

      # By the class in ActiveRecord::Associations to prepend to.
      HOOKS = [["Preloader::Association", Preloads], ["CollectionProxy", ProxyTargets], ["Association", direct_reads(:target)],
               ["SingularAssociation", reads(:reader)], ["SingularAssociation", direct_reads(:load_target)],
               ["CollectionAssociation", reads(:load_target, :ids_reader, :include?, :size)]].freeze
      LOCK = Mutex.new
      private_constant :LOCK, :HOOKS
      @subscriptions = 0

      class << self
        def attached? = @subscriptions.positive?

        # @return [void]
        def subscribe
          LOCK.synchronize do
            @subscriptions += 1
            if defined?(ActiveRecord::Associations::Preloader)
              HOOKS.each { |name, hook| Instrument.prepend(hook, ActiveRecord::Associations.const_get(name)) }
            end
            if defined?(Sequel::Model::Associations)
              Instrument.prepend(SequelPreloads, Sequel::Model::Associations::DatasetMethods)
              Instrument.prepend(SequelReads, Sequel::Model)
            end
          end
        end

        # @return [void]
        def unsubscribe
          LOCK.synchronize { @subscriptions -= 1 if @subscriptions.positive? }
        end

        # This and the methods below are public because the modules above call them.
        def notify(event, *arguments)
          Recording.current&.notify(event, *arguments) if attached?
        end

        # @param reflection [Object] an ActiveRecord reflection
        def used(reflection) = notify(:used, reflection.active_record, reflection.name)

        # Reports a read, unless the caller's caller is ActiveRecord.
        def used_directly(reflection)
          used(reflection) unless !attached? || Recording.current.nil? || library?(caller_locations(2, 1), ActiveRecord, "active_record")
        end

        def preloaded(reflection, records)
          notify(:preloaded, reflection.active_record, reflection.name, records)
          return unless reflection.through_reflection?

          [reflection.through_reflection, reflection.source_reflection].each { |one| notify(:passed, one.active_record, one.name) }
        end

        # Reports a read of all loaded associations, unless the caller's caller is Sequel.
        def kept_read(model, kept)
          return if !attached? || Recording.current.nil? || library?(caller_locations(2, 1), Sequel, "sequel")

          reflections = kept.keys.filter_map { |name| model.association_reflection(name) }
          reflections.each { |reflection| notify(:used, reflection[:model], reflection[:name]) }
        end

        private

        # In doubt this returns false, because a missed read would make a wrong finding. A constant locates
        # the folder, because the application may have wrapped any method.
        # @param callers [Array<Thread::Backtrace::Location>, nil] nil if Ruby itself is the caller
        def library?(callers, library, name)
          @folders ||= {}
          folder = @folders[name] ||= library.const_source_location(:VERSION).first&.[](%r{\A.*/#{name}/})
          path = callers&.first&.path
          path && folder ? path.start_with?(folder) : false
        end
      end
    end
  end
end
