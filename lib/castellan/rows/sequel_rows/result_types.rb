# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Returns the types of a SELECT's columns, in the form of Sequel's schema of a table. Sends a SELECT without rows.
      #
      #   ResultTypes.of(DB[:posts].join(:authors, id: :author_id))   # => { id: { type: :integer, db_type: "integer", … }, … }
      #
      # SQLite has types only for columns of tables, as when Sequel reads the rows; expressions have none.
      module ResultTypes
        TYPES = { 16 => :boolean, 17 => :blob, 20 => :integer, 21 => :integer, 23 => :integer, 25 => :string, 700 => :float, 701 => :float,
                  1042 => :string, 1043 => :string, 1082 => :date, 1083 => :time, 1114 => :datetime, 1184 => :datetime,
                  1700 => :decimal }.freeze # by oid in pg_type
        private_constant :TYPES

        module_function

        # @param dataset [Sequel::Dataset]
        # @return [Hash{Symbol => Hash}]
        def of(dataset)
          sql = SequelRows.without_parameters(dataset.clone(limit: 0)).sql
          found = dataset.db.synchronize(:read_only) do |connection|
            connection.respond_to?(:exec_params) ? postgres(connection, sql) : sqlite(dataset.db, connection, sql)
          end
          dataset.columns.zip(found).to_h.compact
        end

        def postgres(connection, sql)
          result = connection.exec_params(sql, [])
          oids = Array.new(result.nfields) { |index| result.ftype(index) }
          names = oids.each_with_index.map { |oid, index| "format_type(#{oid}, #{result.fmod(index)})" }
          names = connection.exec_params("SELECT #{names.join(", ")}", []).values.first
          oids.zip(names).map { |oid, name| { oid: oid, db_type: name, type: TYPES[oid] } }
        end

        def sqlite(database, connection, sql)
          connection.prepare(sql) { |statement| statement.types.dup }.map do |name|
            { db_type: name, type: database.send(:schema_column_type, name) } if name
          end
        end
        private_class_method :postgres, :sqlite
      end
    end
  end
end
