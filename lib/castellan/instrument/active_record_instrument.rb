# frozen_string_literal: true

module Castellan
  module Instrument
    # Notifies recordings of the statements, records and association reads of ActiveRecord 7.1 and later.
    #
    #   ActiveRecordInstrument.attach    # {Instrument.subscribe} calls it
    #
    # Subscribes to `sql.active_record`. It uses the monotonic clock, because ActiveRecord has such a
    # subscriber itself: one more shares its readings of the clock and allocates no object. Association reads
    # and numbers of records have no cheap event, so private methods are prepended; they stay prepended for the
    # life of the process and do nothing outside of a recording.
    module ActiveRecordInstrument
      # Prepended to Association and HasManyThroughAssociation, where the method has no parameter (7.1, 7.2).
      module Reads
        private

        def find_target
          walked = reflection
          Recording.read(walked.active_record, walked.name) { super }
        end
      end

      # The same for a method with options (8.0). Separate, because `...` allocates an object per call.
      module ReadsWithOptions
        private

        def find_target(...)
          walked = reflection
          Recording.read(walked.active_record, walked.name) { super }
        end
      end

      # Prepended to CollectionAssociation: `user.post_ids` reads the association, too.
      module Ids
        def ids_reader = Recording.read(reflection.active_record, reflection.name) { super }
      end

      # Prepended to Relation: marks the statements of `preload` and `includes`.
      module Preloads
        def preload_associations(records)
          names = eager_loading? ? preload_values : preload_values + includes_values
          names.empty? ? super : Instrument.preload(klass, names) { super }
        end
      end

      # Prepended to Querying: counts the records of a statement. ActiveRecord's own event
      # `instantiation.active_record` would allocate an object per statement.
      module Records
        def _load_from_sql(result_set)
          records = super
          ActiveRecordInstrument.loaded(name, result_set.length) if result_set.length > 1
          records
        end
      end

      # Prepended to JoinDependency: counts the records of a JOIN.
      module Joins
        def instantiate(result_set, ...)
          records = super
          ActiveRecordInstrument.joined(base_klass, reflections, result_set.length, records.size) if result_set.length > 1
          records
        end
      end

      # Prepended to the adapters before 7.2, whose event has no number of rows: adds it while a profile is
      # recorded. Statements of `load_async` run in another thread and have none.
      module Rows
        private

        def log(sql, name = "SQL", binds = [], type_casted_binds = [], statement_name = nil, async: false)
          return super unless Instrument.subscribed? && Recording.current&.watches_spans?

          super do |payload|
            result = yield payload
            payload[:row_count] = Instrument.rows(result)
            result
          end
        end
      end

      class << self
        # @return [Boolean] whether it is subscribed
        def attached? = !@subscriber.nil?

        # Subscribes, if ActiveSupport is loaded.
        def attach
          return if attached? || !defined?(ActiveSupport::Notifications)

          require "active_support/lazy_load_hooks"
          @subscriber = ActiveSupport::Notifications.monotonic_subscribe("sql.active_record", self)
          ActiveSupport.on_load(:active_record, run_once: true) { ActiveRecordInstrument.prepend_to_active_record }
        end

        # Unsubscribes.
        def detach
          ActiveSupport::Notifications.unsubscribe(@subscriber) if attached?
          @subscriber = nil
        end

        # Public for the load hook, which runs it when ActiveRecord::Base is loaded.
        def prepend_to_active_record
          associations = ActiveRecord::Associations
          # The second overrides the first's method in some versions.
          [associations::Association, associations::HasManyThroughAssociation].each { |type| prepend_reads(type) }
          Instrument.prepend(Ids, associations::CollectionAssociation)
          Instrument.prepend(Preloads, ActiveRecord::Relation)
          Instrument.prepend(Records, ActiveRecord::Querying)
          Instrument.prepend(Joins, associations::JoinDependency)
          Instrument.prepend(Rows, ActiveRecord::ConnectionAdapters::AbstractAdapter) if ActiveRecord.version < Gem::Version.new("7.2")
        end

        # Called by ActiveSupport::Notifications after each statement.
        # @param started [Float] monotonic, in seconds, like `finished`
        def call(_name, started, finished, _id, payload)
          recording = Recording.current or return

          recording.notify(:failed) if payload[:exception]
          cached = payload[:cached] ? true : false
          # The binds of a cached query are a Proc, which is not called: it would cast every value.
          recording.listener.query(payload[:sql], payload[:name], (started * 1e9).to_i, ((finished - started) * 1e9).to_i,
                                   cached, payload[:row_count], cached ? nil : payload[:type_casted_binds])
        end

        # Called instead for delayed events: those of `load_async` are published when the result is read.
        def publish_event(event) = call(event.name, event.time, event.end, nil, event.payload)

        # Public for the modules above.
        # @param model [String, nil] the name of the class
        def loaded(model, count)
          recording = Instrument.subscribed? && Recording.current
          recording.loaded(model, count, CallSite.current) if recording && recording.watches_loads?
        end

        # Public for {Joins}.
        def joined(model, reflections, rows, records)
          loaded(model.name, rows)
          recording = Instrument.subscribed? && Recording.current
          recording.notify(:joined, model, rows, records, tree(model, reflections)) if recording
        end

        private

        def prepend_reads(type)
          return unless type.private_method_defined?(:find_target, false)

          Instrument.prepend(type.instance_method(:find_target).arity.zero? ? Reads : ReadsWithOptions, type)
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
      end
    end
  end
end
