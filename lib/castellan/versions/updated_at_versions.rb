# frozen_string_literal: true

module Castellan
  module Versions
    # Computes version tokens from count and max(updated_at), like hand-written cache keys.
    #
    #   versions = UpdatedAtVersions.new(ActiveRecord::Base)
    #   versions.current([Dependency.new("posts")]) # => "20-2026-01-02 03:04:05.678901"
    #
    # Serves stale documents until they expire after these changes, so set a short `ttl:`:
    # - an update that does not set `updated_at` (update_all, update_column, raw SQL, another program);
    # - a delete and an insert between two reads, if the newest record stays;
    # - a transaction that sets `updated_at` early, but commits after a newer value was read;
    # - two changes within the precision of the column (a second, in old schemas);
    # - a change on a machine with another clock.
    #
    # Counts the whole table for each read, and without an index on `updated_at` also scans it. Prefer
    # {ExactVersions}.
    class UpdatedAtVersions
      # @param source [Class, Object] ActiveRecord::Base or a subclass, or a Sequel::Database; PostgreSQL or
      #   SQLite
      # @param column [String, Symbol]
      def initialize(source, column: "updated_at")
        @connections = RawConnections.for(source)
        @column = "\"#{column.to_s.gsub('"', '""')}\""
        freeze
      end

      # @param dependencies [Array<Dependency>]
      # @yieldparam error [StandardError] of the driver, if the database fails
      # @return [String, nil] nil in a PostgreSQL transaction that has written, and if the database fails (the
      #   query for the data then raises the error)
      # @raise [ConfigurationError] if a table or the column does not exist
      def current(dependencies, &failed)
        return if Castellan.off?
        return "0" if dependencies.empty?

        postgres = @connections.dialect == :postgres
        sql = sql(dependencies.map(&:table).uniq, postgres)
        token = read(postgres ? PostgresReader : SQLiteReader, sql, &failed)
        token && "#{token}@#{address.join("/")}"
      end

      # @return [Array<String>] see {ExactVersions#address}
      def address = @connections.address

      # @param model [Object] a model or dataset
      # @return [Boolean] whether the model's tables are in the database of these versions
      def of?(model) = @connections.of?(model)

      private

      def read(kind, sql, &failed)
        reader = kind.new(prepared: false)
        @connections.with { |raw| @connections.observe(raw, sql) { reader.value(raw, sql) } }
      rescue *kind::UNKNOWN => error
        raise ConfigurationError, "the version by #{@column} cannot be read: #{error.message.lines.first&.chomp}; " \
                                  "name another column:, or use ExactVersions or CommitVersions"
      rescue kind::ERROR => error
        failed&.call(error)
        nil
      end

      def sql(tables, postgres)
        parts = tables.map do |table| # with the table, because SQLite reads a lone "name" that is not a column as a string
          "(SELECT count(*) || '-' || coalesce(CAST(max(#{quote(table)}.#{@column}) AS text), '') FROM #{quote(table)})"
        end
        "SELECT #{parts.join(" || '.' || ")}#{' WHERE txid_current_if_assigned() IS NULL' if postgres}"
      end

      def quote(table)
        table.split(".").map { |part| "\"#{part}\"" }.join(".")
      end
    end
  end
end
