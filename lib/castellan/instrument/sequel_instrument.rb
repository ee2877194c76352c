# frozen_string_literal: true

require_relative "databases"

module Castellan
  module Instrument
    # Notifies recordings of the statements, records and association reads of Sequel 5.
    #
    #   SequelInstrument.attach    # {Instrument.subscribe} calls it
    #
    # Prepends modules to Sequel's classes, so all databases are observed, for the life of the process;
    # outside of a recording the modules do nothing. Sequel's SQLite adapter reads rows one by one, so their
    # number is unknown.
    module SequelInstrument
      # Sequel does not name statements. {Detect} recognizes them by this name.
      NAME = "Sequel"

      # For Sequel::Database.
      module Statements
        def log_connection_yield(sql, conn, args = nil)
          recording = Instrument.subscribed? && Recording.current
          return super unless recording

          apart = Recording.apart_ns
          started = Clock.monotonic_ns
          begin
            result = super
          rescue *(database_error_classes - [ArgumentError]) # the block that reads the rows may raise ArgumentError
            recording.notify(:failed)
            raise
          ensure
            apart = Recording.apart_ns - apart
            spent = Clock.monotonic_ns - started - apart
            recording.notify(:apart, apart) if apart.positive?
            # With several statements, an Array is a row of one of them.
            recording.listener.query(SequelInstrument.text(self, sql), SequelInstrument.name_of(self), started, spent, false,
                                     (Instrument.rows(result) unless result.is_a?(Array)), args.is_a?(Hash) ? args.values : args)
          end
        end
      end

      # For Sequel::Dataset: counts the rows of `all`. Sequel's SQLite adapter yields rows inside of the statement, so
      # `each` measures the time of the block, which is not that of the statement.
      module Records
        def each
          return super unless block_given? && db.database_type == :sqlite && Instrument.subscribed? && Recording.current

          super { |row| Recording.apart { yield row } }
        end

        private

        def post_load(rows)
          SequelInstrument.loaded(self, rows) if rows.size > 1 && !respond_to?(:model)
          super
        end
      end

      # For Sequel::Model.
      module Reads
        private

        def _load_associated_objects(reflection, *) = Recording.read(reflection[:model], reflection[:name]) { super }
      end

      # For Sequel::Model::Associations::DatasetMethods: counts the records of `all` before eager loading, and marks the
      # statements of `eager`.
      module Preloads
        private

        # Also the gem sequel_pg calls it, which replaces `all`.
        def post_load(records)
          rows = records.size
          SequelInstrument.loaded(self, records) if rows > 1
          super
          SequelInstrument.joined(self, rows, records.size) if rows > 1
        end

        def eager_load(records, associations = @opts[:eager], model = self.model)
          Instrument.preload(model, associations) { super }
        end
      end

      class << self
        # May run again, because Sequel::Model may be loaded later than Sequel.
        def attach
          return unless defined?(Sequel::Database)

          Instrument.prepend(Statements, Sequel::Database)
          Instrument.prepend(Records, Sequel::Dataset)
          return unless defined?(Sequel::Model)

          Instrument.prepend(Reads, Sequel::Model)
          Instrument.prepend(Preloads, Sequel::Model::Associations::DatasetMethods)
        end

        # @return [String] the name for statements to this database
        def name_of(database)
          Databases.name(NAME, database) do
            place = database.opts.slice(:adapter, :host, :port, :database).compact
            [nil, "", ":memory:"].include?(place[:database]) ? database.object_id : place
          end
        end

        # @return [String] the SQL; for a prepared statement Sequel logs only its name
        def text(database, sql)
          return sql unless sql.start_with?("EXECUTE ")

          name = sql[/\AEXECUTE (\w+)/, 1]
          (name && database.prepared_statement(name.to_sym)&.prepared_sql) || sql
        end

        # Public because {Records} calls it. Passes the model of the dataset: records may belong to
        # subclasses, or become records only after an eager graph is built.
        def loaded(dataset, records)
          recording = Instrument.subscribed? && Recording.current
          return unless recording && recording.watches_loads?

          recording.notify(:joining) if dataset.opts[:eager_graph]
          model = dataset.respond_to?(:model) ? dataset.model : records.first.class
          recording.loaded(model.name, records.size, CallSite.current)
        end

        # Public because {Records} calls it.
        def joined(dataset, rows, records)
          graph = dataset.opts[:eager_graph]
          recording = Instrument.subscribed? && Recording.current
          return unless recording && graph && dataset.respond_to?(:model)

          reflections = graph[:reflections]
          names = reflections.each_key.with_object({}) do |table, tree|
            [*graph[:requirements][table], table].reduce(tree) { |below, one| below[reflections.fetch(one)[:name]] ||= {} }
          end
          recording.notify(:joined, dataset.model, rows, records, names)
        end
      end
    end
  end
end
