# frozen_string_literal: true

module Castellan
  module Instrument
    # Listens to ActiveRecord 7.1 and later through ActiveSupport::Notifications: `sql.active_record` tells of every statement, also of
    # those of `load_async` and of the query cache. How many records came of one is told by {ActiveRecordLoads}.
    #
    #   ActiveRecordInstrument.attach    # {Instrument.subscribe} does
    #
    # Timed by the monotonic clock, because ActiveRecord has a listener of that kind itself: one more shares its two readings of the
    # clock and costs one call and no object, where `start` and `finish` are two calls and read the clock again.
    # The association that is walked is told by the one private method that is prepended, `Association#find_target`
    # ({Witness}); a statement outside it (`user.posts.count`) has only its table and key to show for it.
    module ActiveRecordInstrument
      # Prepended to ActiveRecord::Associations::Association and HasManyThroughAssociation, where the method takes nothing (7.1, 7.2).
      module Witness
        private

        def find_target
          walker = Recording.walk(reflection) or return super

          begin
            super
          ensure
            walker.leave
          end
        end
      end

      # The same where it takes options (8.0). Apart, because `...` makes an object for each walk, recorded or not.
      module ForwardingWitness
        private

        def find_target(...)
          walker = Recording.walk(reflection) or return super

          begin
            super
          ensure
            walker.leave
          end
        end
      end

      # Prepended to ActiveRecord::Associations::CollectionAssociation: `user.post_ids` walks the association, too.
      module Ids
        def ids_reader
          walker = Recording.walk(reflection) or return super

          begin
            super
          ensure
            walker.leave
          end
        end
      end

      # Prepended to ActiveRecord::Relation: marks the statements that load what `preload` and `includes` name.
      module Preloads
        def preload_associations(records)
          walker = Recording.current&.walker or return super

          walker.enter(Instrument::PRELOAD, nil)
          begin
            super
          ensure
            walker.leave
          end
        end
      end

      # Prepended to ActiveRecord::Associations::JoinDependency.
      module Joins
        def instantiate(result_set, ...)
          records = super
          if records.size < result_set.length && ActiveRecordInstrument.attached? && Recording.current
            Instrument.joined(base_klass, result_set.length, records.size, ActiveRecordInstrument.tree(base_klass, reflections))
          end
          records
        end
      end

      class << self
        # @return [Boolean] whether there is something to attach to
        def loaded? = defined?(ActiveSupport::Notifications) ? true : false

        def attached? = !@subscriber.nil?

        # @return [Boolean] whether associations are witnessed; without it they are derived from table and key
        def witness?
          return false unless defined?(ActiveRecord::Associations::Association)

          [Witness, ForwardingWitness].any? { |witness| ActiveRecord::Associations::Association.include?(witness) }
        end

        def attach
          return if attached? || !loaded?

          require "active_support/lazy_load_hooks"
          @subscriber = ActiveSupport::Notifications.monotonic_subscribe("sql.active_record", self)
          ActiveSupport.on_load(:active_record, run_once: true) do
            ActiveRecordLoads.attach # before who tells of JOINs: an observer hears of the records first
            ActiveRecordInstrument.prepend_witness
            ActiveRecordRows.attach
          end
        end

        def detach
          ActiveSupport::Notifications.unsubscribe(@subscriber) if attached?
          @subscriber = nil
        end

        # Public for the load hook, which runs it when ActiveRecord::Base is there.
        def prepend_witness
          associations = ActiveRecord::Associations
          [associations::Association, associations::HasManyThroughAssociation].each do |type| # the second does without the first's at times
            next unless type.private_method_defined?(:find_target)

            witness = type.instance_method(:find_target).arity.zero? ? Witness : ForwardingWitness
            type.prepend(witness) unless type.ancestors.first(2).include?(witness)
          end
          collection = associations::CollectionAssociation
          collection.prepend(Ids) if collection.method_defined?(:ids_reader) && !collection.include?(Ids)
          relation = ActiveRecord::Relation
          relation.prepend(Preloads) if relation.method_defined?(:preload_associations) && !relation.include?(Preloads)
          joins = ActiveRecord::Associations::JoinDependency
          joins.prepend(Joins) if joins.method_defined?(:instantiate) && !joins.include?(Joins)
        end

        # @param reflections [Array] outer ones first
        # @return [Hash] `{ posts: { comments: {} } }`
        def tree(model, reflections)
          trees = { model => {} }
          reflections.each do |reflection|
            owner = trees.keys.find { |known| known <= reflection.active_record } || model
            trees[owner][reflection.name] = trees[reflection.polymorphic? ? nil : reflection.klass] ||= {}
          end
          trees[model]
        end

        # Called by ActiveSupport::Notifications after each statement.
        # @param started [Float] seconds of the monotonic clock, as `finished`
        def call(_name, started, finished, _id, payload)
          recording = Recording.current or return

          recording.failed if payload[:exception]
          binds = payload[:type_casted_binds] # a Proc of a cached query is not called: it would cast every value
          recording.listener.query(payload[:sql], payload[:name], (started * 1e9).to_i, ((finished - started) * 1e9).to_i,
                                   payload[:cached] || false, payload[:row_count], (binds if binds.is_a?(Array)))
        end

        # Called instead for events that were kept back, as those of `load_async` are until their result is asked for.
        def publish_event(event)
          recording = Recording.current
          return unless recording

          payload = event.payload
          recording.failed if payload[:exception]
          recording.query(payload[:sql], payload[:name], (event.time * 1e9).to_i, (event.duration * 1e6).to_i,
                          payload[:cached] || false, payload[:row_count], binds(payload))
        end

        private

        # A Proc (of a cached query) is not called: it would cast every value.
        def binds(payload)
          values = payload[:type_casted_binds]
          values if values.is_a?(Array)
        end
      end
    end
  end
end
