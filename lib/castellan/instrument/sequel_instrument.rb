# frozen_string_literal: true

require_relative "databases"

module Castellan
  module Instrument
    # Listens to Sequel 5: to every database there is or will be, frozen ones included, because the modules are prepended
    # to classes. Prepended once and for the life of the process; while detached or without a recording they only ask a
    # thread variable.
    #
    #   SequelInstrument.attach    # {Instrument.subscribe} does
    #
    # Statements and their rows come from `Database#log_connection_yield` (of what the SQLite adapter writes, no rows are known),
    # numbers of records from `Dataset#_all` (below `all`, not below `each`, and before anything is loaded eagerly), the association
    # that is walked from `Model#_load_associated_objects`.
    module SequelInstrument
      # What its statements are called: Sequel has no name for them, and the detector asks whose models to look at.
      NAME = "Sequel"
      READ = :castellan_read_rows
      private_constant :READ

      # Prepended to Sequel::Database.
      module Statements
        def log_connection_yield(sql, conn, args = nil)
          recording = SequelInstrument.attached? && Recording.current
          return super unless recording

          started = Clock.monotonic_ns
          begin
            answer = super
          rescue *(database_error_classes - [ArgumentError]) # which who reads the rows may raise, too
            recording.failed
            raise
          ensure
            recording.query(SequelInstrument.text(self, sql), SequelInstrument.name_of(self), started, Clock.monotonic_ns - started, false,
                            SequelInstrument.rows(answer), args.is_a?(Hash) ? args.values : args)
          end
        end
      end

      # Prepended to Sequel::SQLite::Database, which hands over the rows while the statement runs: they are counted where somebody draws
      # them. Whoever reads may leave by `return`, so the number is left for the statement, which ends next.
      module ReadRows
        def execute(sql, opts = Sequel::OPTS)
          return super unless block_given? && SequelInstrument.attached? && Recording.current&.watches_spans?

          super do |results|
            yield results.extend(RowCount::Counted)
          ensure
            Thread.current[READ] = RowCount.call(results)
          end
        end
      end

      # Prepended to Sequel::Dataset.
      module Records
        private

        def _all(block)
          rows = 0
          records = super do |list|
            yield list
            rows = list.size
            SequelInstrument.tell(self, list) if rows > 1 && SequelInstrument.attached?
          end
          SequelInstrument.joined(self, rows, records.size) if records.size < rows && SequelInstrument.attached?
          records
        end
      end

      # Prepended to Sequel::Model.
      module Witness
        private

        def _load_associated_objects(reflection, *)
          recording = SequelInstrument.attached? && Recording.current
          return super unless recording && recording.watches_accesses?

          recording.enter(reflection[:model], reflection[:name])
          begin
            super
          ensure
            recording.leave
          end
        end
      end

      # Prepended to Sequel::Model::Associations::DatasetMethods: marks the statements that load what `eager` names.
      module Preloads
        private

        def eager_load(*)
          recording = SequelInstrument.attached? && Recording.current
          return super unless recording && recording.watches_accesses?

          recording.enter(Instrument::PRELOAD, nil)
          begin
            super
          ensure
            recording.leave
          end
        end
      end

      class << self
        # @return [Boolean] whether there is something to attach to
        def loaded? = defined?(Sequel::Database) ? true : false

        def attached? = @attached || false

        # Sequel::Model and an adapter may be loaded after the rest of Sequel: prepended to at the first attach that finds them.
        def attach
          return unless loaded?

          Sequel::Database.prepend(Statements) unless Sequel::Database.include?(Statements)
          Sequel::Dataset.prepend(Records) unless Sequel::Dataset.include?(Records)
          Sequel::SQLite::Database.prepend(ReadRows) if defined?(Sequel::SQLite::Database) && !Sequel::SQLite::Database.include?(ReadRows)
          witness
          @attached = true
        end

        def detach
          @attached = false
        end

        # @return [String] what statements to this database are called
        def name_of(database)
          Databases.name(NAME, database) do
            place = database.opts.slice(:adapter, :host, :port, :database).compact
            [nil, "", ":memory:"].include?(place[:database]) ? database.object_id : place
          end
        end

        # @return [String] of a prepared statement, of which only the name is logged, the statement
        def text(database, sql)
          return sql unless sql.start_with?("EXECUTE ")

          name = sql[/\AEXECUTE (\w+)/, 1]
          (name && database.prepared_statement(name.to_sym)&.prepared_sql) || sql
        end

        # @param answer [Object] of the driver; an Array is one row of one of several statements
        # @return [Integer, nil]
        def rows(answer)
          read = Thread.current[READ] or return (RowCount.call(answer) unless answer.is_a?(Array))

          Thread.current[READ] = nil
          read
        end

        # Public for {Records}. The model is the one that was asked, though its records may be of subclasses, or become records only
        # after an eager graph is built.
        def tell(dataset, records)
          recording = Recording.current
          return unless recording&.watches_loads?

          model = dataset.respond_to?(:model) ? dataset.model : records.first.class
          recording.loaded(model.name, records.size, CallSite.current)
        end

        # Public for {Records}: fewer records than rows, because an eager graph was built of them.
        def joined(dataset, rows, records)
          graph = dataset.opts[:eager_graph]
          return unless Recording.current && graph && dataset.respond_to?(:model)

          names = graph[:reflections].reject { |table, _reflection| graph[:requirements].fetch(table, []).any? }
          Instrument.joined(dataset.model, rows, records, names.values.to_h { |reflection| [reflection[:name], {}] })
        end

        private

        def witness
          return if !defined?(Sequel::Model) || Sequel::Model <= Witness # `Model.include?` would ask the dataset

          Sequel::Model.prepend(Witness) if Sequel::Model.private_method_defined?(:_load_associated_objects)
          datasets = Sequel::Model::Associations::DatasetMethods
          datasets.prepend(Preloads) if datasets.private_method_defined?(:eager_load)
        end
      end
    end
  end
end
