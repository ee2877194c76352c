# frozen_string_literal: true

module Castellan
  module Versions
    # Tokens of count and max(updated_at), what people do by hand today. Needs no installation; misses changes.
    #
    #   versions = UpdatedAtVersions.new(ActiveRecord::Base)
    #   versions.current([Dependency.new("posts")]) # => "20-2026-01-02 03:04:05.678901"
    #
    # Blind spots, each of which serves old bytes until they expire, so give the layer a short `ttl:`:
    # - an update that leaves `updated_at` alone (update_all, update_column, raw SQL, another program);
    # - a deletion and an insertion between two looks, when the newest record stays;
    # - an update of a transaction that took its time early and commits late, after a newer one was seen;
    # - two changes within the precision of the column (a second, on old schemas);
    # - clocks of several machines that disagree.
    # Reads the whole table unless `updated_at` has an index, and counts it all the same. Use {ExactVersions} where you can.
    class UpdatedAtVersions
      # @param source [Class, Object] ActiveRecord::Base or a class of it, or a Sequel::Database; PostgreSQL or SQLite
      # @param column [String, Symbol]
      def initialize(source, column: "updated_at")
        @connections = RawConnections.for(source)
        @column = "\"#{column.to_s.gsub('"', '""')}\""
        freeze
      end

      # @param dependencies [Array<Dependency>]
      # @return [String, nil] nil inside a PostgreSQL transaction that has itself written, and when the database fails: the query for
      #   the data says why
      # @raise [ConfigurationError] when a table or its column is not there
      def current(dependencies)
        return if Castellan.off?
        return "0" if dependencies.empty?

        postgres = @connections.dialect == :postgres
        sql = sql(dependencies.map(&:table).uniq, postgres)
        read(postgres ? PostgresReader : SQLiteReader, sql)
      end

      private

      def read(kind, sql)
        reader = kind.new(prepared: false)
        @connections.with { |raw| @connections.observe(raw, sql) { reader.value(raw, nil, sql) } }
      rescue *kind::UNKNOWN => error
        raise ConfigurationError, "the version by #{@column} cannot be read: #{error.message.lines.first&.chomp}; " \
                                  "name another column:, or use ExactVersions or CommitVersions"
      rescue kind::ERROR
        nil
      end

      def sql(tables, postgres)
        parts = tables.map do |table| # the column with its table: SQLite takes a lone "name" that is no column for a text
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
