# frozen_string_literal: true

module Castellan
  module Instrument
    # Tells recordings how many records ActiveRecord made of one statement. One record has no siblings, so it is not told.
    #
    #   ActiveRecordLoads.attach    # {ActiveRecordInstrument.attach} does, when ActiveRecord is there
    #
    # ActiveRecord says the same by `instantiation.active_record`. But to listen to that makes ActiveSupport build an event after each
    # statement, recorded or not, which costs several times what counting the statement does. So the two methods that send it are
    # prepended; the event is listened to where they are not as they are known here.
    module ActiveRecordLoads
      EVENT = "instantiation.active_record"
      private_constant :EVENT

      # Prepended to ActiveRecord::Querying.
      module Statements
        def _load_from_sql(result_set)
          records = super
          ActiveRecordLoads.tell(name, result_set.length) if result_set.length > 1
          records
        end
      end

      # Prepended to ActiveRecord::Associations::JoinDependency.
      module Joins
        def instantiate(result_set, _strict_loading)
          records = super
          ActiveRecordLoads.tell(base_klass.name, result_set.length) if result_set.length > 1
          records
        end
      end

      # Listens to the event.
      module Events
        class << self
          def start(_name, _id, _payload); end

          def finish(_name, _id, payload)
            ActiveRecordLoads.tell(payload[:class_name], payload[:record_count]) if payload[:record_count] > 1
          end
        end
      end
      private_constant :Events

      class << self
        # Once, for the life of the process; nothing is told while {ActiveRecordInstrument} is detached.
        # @return [void]
        def attach
          return if @attached

          @attached = true
          hooks = { ActiveRecord::Querying => Statements, ActiveRecord::Associations::JoinDependency => Joins }
          if hooks.all? { |owner, hook| known?(owner, hook) }
            hooks.each { |owner, hook| owner.prepend(hook) }
          else
            ActiveSupport::Notifications.subscribe(EVENT, Events)
          end
        end

        # Public for the modules above.
        # @param model [String, nil] the name of the class
        # @param count [Integer]
        def tell(model, count)
          recording = ActiveRecordInstrument.attached? && Recording.current
          return unless recording && recording.watches_loads?

          recording.loaded(model, count, CallSite.current)
        end

        private

        def known?(owner, hook)
          hook.instance_methods(false).all? do |name|
            owner.method_defined?(name) && owner.instance_method(name).arity == hook.instance_method(name).arity
          end
        end
      end
    end
  end
end
