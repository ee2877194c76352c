# frozen_string_literal: true

module Castellan
  module Instrument
    # Notifies recordings of eagerly loaded associations and of reads of associations, to find eager loads that
    # are never read.
    #
    #   EagerInstrument.subscribe
    #   Recording.open(Detect::Evidence::Use.new) { … }
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
      # @return [Module] notifies of a read when one of these methods is called
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

      # @return [Module] the same for methods that ActiveRecord calls for itself, too
      def self.direct_reads(name)
        Module.new do
          define_method(name) do
            EagerInstrument.used_directly(reflection)
            super()
          end
        end
      end
      private_class_method :reads, :direct_reads

      # Prepended to ActiveRecord::Associations::Preloader::Association.
      module Preloads
        def run
          EagerInstrument.preloaded(@reflection, owners.size) if !run? && @associate
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

      # By the class in ActiveRecord::Associations that they are prepended to.
      HOOKS = [["Preloader::Association", Preloads], ["CollectionProxy", ProxyTargets], ["Association", direct_reads(:target)],
               ["SingularAssociation", reads(:reader)], ["SingularAssociation", direct_reads(:load_target)],
               ["CollectionAssociation", reads(:load_target, :ids_reader, :include?, :size)]].freeze
      LOCK = Mutex.new
      private_constant :LOCK, :HOOKS
      @subscriptions = 0

      class << self
        # @return [Boolean] whether it notifies recordings
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

        # Public for the modules above, like the methods below.
        def notify(event, *arguments)
          Recording.current&.notify(event, *arguments) if attached?
        end

        # @param reflection [Object] of ActiveRecord
        def used(reflection) = notify(:used, reflection.active_record, reflection.name)

        # A read, unless ActiveRecord's own code is the caller's caller.
        def used_directly(reflection)
          used(reflection) unless !attached? || Recording.current.nil? || library?(caller_locations(2, 1), ActiveRecord, "active_record")
        end

        def preloaded(reflection, records)
          notify(:preloaded, reflection.active_record, reflection.name, records)
          return unless reflection.through_reflection?

          [reflection.through_reflection, reflection.source_reflection].each { |one| notify(:passed, one.active_record, one.name) }
        end

        # A read of all kept associations, unless Sequel's own code is the caller's caller.
        def kept_read(model, kept)
          return if !attached? || Recording.current.nil? || library?(caller_locations(2, 1), Sequel, "sequel")

          reflections = kept.keys.filter_map { |name| model.association_reflection(name) }
          reflections.each { |reflection| notify(:used, reflection[:model], reflection[:name]) }
        end

        private

        # If in doubt the application reads, because a missed read makes a wrong finding. The folder is found by a
        # constant, because the application may have wrapped any method.
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
