# frozen_string_literal: true

module Castellan
  module Instrument
    # Notifies recordings of the statements, records and association reads of ActiveRecord 7.1 and later.
    #
    #   ActiveRecordInstrument.attach    # {Instrument.subscribe} calls it
    #
    # Subscribes to `sql.active_record` with the monotonic clock: ActiveRecord has such a subscriber itself,
    # so ours shares its readings of the clock and allocates no object. For association reads and numbers of
    # records there is no cheap event, so modules are prepended to private methods. They stay for the life of
    # the process and do nothing outside of a recording.
    module ActiveRecordInstrument
      # For Association and HasManyThroughAssociation in versions where the method has no parameter (7.1,
      # 7.2).
      module Reads
        private

        def find_target
          walked = reflection
          Recording.read(walked.active_record, walked.name) { super }
        end
      end

      # For versions where the method takes options (8.0).
      # A separate module, because `...` allocates an object per call.
      module ReadsWithOptions
        private

        def find_target(...)
          walked = reflection
          Recording.read(walked.active_record, walked.name) { super }
        end
      end

      # For CollectionAssociation: `user.post_ids` reads the association, too.
      module Ids
        def ids_reader = Recording.read(reflection.active_record, reflection.name) { super }
      end

      # For Relation: marks the statements of `preload` and `includes`.
      module Preloads
        def preload_associations(records)
          names = eager_loading? ? preload_values : preload_values + includes_values
          names.empty? ? super : Instrument.preload(klass, names) { super }
        end
      end

      # For Querying: counts the records of a statement.
      # ActiveRecord's event `instantiation.active_record` would allocate an object per statement.
      module Records
        def _load_from_sql(result_set)
          records = super
          ActiveRecordInstrument.loaded(name, result_set.length) if result_set.length > 1
          records
        end
      end

      # For JoinDependency: counts the records of a JOIN.
      module Joins
        def instantiate(result_set, ...)
          return super if result_set.length < 2

          ActiveRecordInstrument.joining(join_root, result_set.length)
          super.tap { |records| ActiveRecordInstrument.joined(join_root, result_set.length, records.size) }
        end
      end

      ADAPTERS = %w[postgresql sqlite3 mysql2 trilogy].freeze
      private_constant :ADAPTERS

      # For the adapters before 7.2, whose event has no number of rows: adds it while a profile is recorded.
      # Statements of `load_async` run in another thread and get none.
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
        def attached? = !@subscriber.nil?

        def attach
          return if attached? || !defined?(ActiveSupport::Notifications)

          require "active_support/lazy_load_hooks"
          @subscriber = ActiveSupport::Notifications.monotonic_subscribe("sql.active_record", self)
          ActiveSupport.on_load(:active_record, run_once: true) { ActiveRecordInstrument.prepend_to_active_record }
        end

        def detach
          ActiveSupport::Notifications.unsubscribe(@subscriber) if attached?
          @subscriber = nil
        end

        # Public because the load hook of ActiveRecord::Base calls it.
        def prepend_to_active_record
          associations = ActiveRecord::Associations
          # In some versions HasManyThroughAssociation overrides the method.
          [associations::Association, associations::HasManyThroughAssociation].each { |type| prepend_reads(type) }
          Instrument.prepend(Ids, associations::CollectionAssociation)
          Instrument.prepend(Preloads, ActiveRecord::Relation)
          Instrument.prepend(Records, ActiveRecord::Querying)
          Instrument.prepend(Joins, associations::JoinDependency)
          prepend_rows if ActiveRecord.version < Gem::Version.new("7.2")
        end

        # ActiveSupport::Notifications calls this after each statement.
        # @param started [Float] monotonic, in seconds, like `finished`
        def call(_name, started, finished, _id, payload)
          recording = Recording.current or return

          recording.notify(:failed) if payload[:exception]
          cached = payload[:cached] ? true : false
          # Do not call the Proc that holds the binds of a cached query: it would cast every value.
          recording.listener.query(payload[:sql], payload[:name], (started * 1e9).to_i, ((finished - started) * 1e9).to_i,
                                   cached, payload[:row_count], cached ? nil : payload[:type_casted_binds])
        end

        # Delayed events come here: those of `load_async` are published when the result is read.
        def publish_event(event) = call(event.name, event.time, event.end, nil, event.payload)

        # Public because the modules above call it.
        # @param model [String, nil] the name of the class
        def loaded(model, count)
          recording = Instrument.subscribed? && Recording.current
          recording.loaded(model, count, CallSite.current) if recording && recording.watches_loads?
        end

        # Public because {Joins} calls it, before callbacks of the records send statements.
        # @param root [ActiveRecord::Associations::JoinDependency::JoinPart] the model and its joined associations
        def joining(root, rows)
          loaded(root.base_klass.name, rows)
          recording = Instrument.subscribed? && Recording.current
          recording.notify(:joining) if recording
        end

        # Public because {Joins} calls it.
        def joined(root, rows, records)
          recording = Instrument.subscribed? && Recording.current
          recording.notify(:joined, root.base_klass, rows, records, tree(root)) if recording
        end

        private

        # Not to AbstractAdapter: where another gem aliases its `log` later (scout_apm 5), the alias would be our method, which
        # would call itself.
        def prepend_rows
          ADAPTERS.each { |name| ActiveSupport.on_load(:"active_record_#{name}adapter") { Instrument.prepend(Rows, self) } }
        end

        def prepend_reads(type)
          return unless type.private_method_defined?(:find_target, false)

          Instrument.prepend(type.instance_method(:find_target).arity.zero? ? Reads : ReadsWithOptions, type)
        end

        # Takes the associations from the JOIN and not by their models, because a model may be joined to itself.
        # @return [Hash] `{ posts: { comments: {} } }`
        def tree(part) = part.children.to_h { |child| [child.reflection.name, tree(child)] }
      end
    end
  end
end
