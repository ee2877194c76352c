# frozen_string_literal: true

module Castellan
  class Purge
    # Reads and writes the tables `castellan_purges` and `castellan_urls` of the primary database. Thread-safe.
    #
    # `castellan_purges` has the notes of the triggers; `castellan_urls` has the URLs of documents, for
    # proxies that cannot purge by tags.
    class Outbox
      BATCH = 500 # notes
      LONGEST = 30 * 86_400 # seconds
      MOST_ROWS = 1_000_000 # of castellan_urls: clients can invent URLs
      COUNTED_FOR = 60 * 1_000_000_000 # nanoseconds
      RENEWED_AFTER = 86_400 # seconds
      CHECKED_FOR = 1_000_000_000 # nanoseconds: a migration, which another process runs, may drop a trigger
      FORGET_EVERY = 3_600 * 1_000_000_000 # nanoseconds: the statement reads the whole table
      private_constant :LONGEST, :MOST_ROWS, :COUNTED_FOR, :RENEWED_AFTER, :CHECKED_FOR, :FORGET_EVERY

      # @param source [Class, Object] ActiveRecord::Base or a Sequel::Database
      def initialize(source)
        @installed = nil # the tables with triggers, and until when this is not asked again
        @connections = Versions::RawConnections.for(source, writing: true)
      end

      # @param tables [Hash{String => Array<Array<String>>}] table => the columns of each id
      def install(tables)
        tables.each { |table, ids| @connections.execute(triggers.install(table, ids, columns(table))) }
        @installed = nil
      end

      # @param tables [Array<String>]
      def uninstall(tables)
        tables.each { |table| @connections.execute(triggers.uninstall(table)) }
        @connections.execute(%w[castellan_purges castellan_urls].map { |table| "DROP TABLE IF EXISTS #{table}" })
        @installed = nil
      end

      # @return [Boolean] whether {#read} in a new thread finds the notes of what this thread reads
      def default? = @connections.default?

      # @param tables [Array<String>]
      # @return [Array<String>] the tables without triggers; asks the database once a second, in one thread
      def without_triggers(tables)
        now = Clock.monotonic_ns
        installed, until_ns = @installed
        installed = look_up(installed, now) if installed.nil? || now >= until_ns
        tables - installed
      end

      # @param after [Integer] an id
      # @return [Array<Array(Integer, String)>] ids and tags of the oldest notes with greater ids
      def read(after)
        sql = "SELECT id, tags FROM castellan_purges WHERE id > #{after} ORDER BY id LIMIT #{BATCH}"
        @connections.with { |raw| rows(raw, sql) }.map { |id, tags| [Integer(id), tags] }
      end

      # @param ids [Array<Integer>]
      def delete(ids)
        @connections.execute(["DELETE FROM castellan_purges WHERE id IN (#{ids.join(", ")})"]) if ids.any?
      end

      # Waits for notes: on PostgreSQL for a notification; for 20 ms on SQLite, and in a transaction (of a test, which
      # shares it among threads), where no notification arrives.
      # @param seconds [Numeric] longest wait for a notification
      # @yield after LISTEN, so that the block can send notes that arrived before
      def wait(seconds)
        listened = postgres? && @connections.with do |raw|
          next unless raw.transaction_status == PG::PQTRANS_IDLE

          raw.exec("LISTEN #{Triggers::CHANNEL}")
          yield
          raw.wait_for_notify(seconds)
          raw.exec("UNLISTEN #{Triggers::CHANNEL}")
        end
        sleep(0.02) unless listened
      end

      # Writes only if a tag was not noted within a day: a popular document is rendered often.
      # @param tags [Array<String>]
      # @param url [String]
      # @param fields [String] the header fields that the response varies by
      def remember(tags, url, fields)
        now = Time.now.to_i
        return if noted(tags, url, fields, now - RENEWED_AFTER) == tags.size

        values = tags.sort.map { |tag| "(#{[tag, url, fields].map { |text| Triggers.literal(text) }.join(", ")}, #{now})" }
        @connections.execute(["INSERT INTO castellan_urls (tag, url, fields, at) VALUES #{values.join(", ")} " \
                              "ON CONFLICT (tag, url, fields) DO UPDATE SET at = excluded.at"])
      rescue StandardError
        @installed = nil # another process may have uninstalled the triggers
        raise
      end

      # @return [Boolean] whether the table has room for more URLs; counted at most once a minute
      def room?
        now = Clock.monotonic_ns
        return @room if @counted && now - @counted < COUNTED_FOR

        @counted = now
        @room = @connections.with { |raw| rows(raw, "SELECT count(*) FROM castellan_urls") }.flatten.first.to_i < MOST_ROWS
      end

      # Deletes URLs that were noted 30 days ago (docs/proxies.md, "A purge can miss"). Runs at most once an
      # hour.
      def forget_urls
        now = Clock.monotonic_ns
        return if @forgotten && now - @forgotten < FORGET_EVERY

        @forgotten = now
        @connections.execute(["DELETE FROM castellan_urls WHERE at < #{Time.now.to_i - LONGEST}"])
      end

      # @param tags [Array<String>]
      # @return [Array<Array(String, String)>] the URLs and fields of documents with any of the tags
      def urls(tags)
        list = tags.map { |tag| Triggers.literal(tag) }.join(", ")
        @connections.with { |raw| rows(raw, "SELECT DISTINCT url, fields FROM castellan_urls WHERE tag IN (#{list})") }
      end

      private

      # While the database does not answer, or its pool has no connection, what is known counts for a minute: a reader
      # of cached bytes must not wait each second.
      def look_up(known, now)
        @installed = [known, now + CHECKED_FOR] if known
        found = @connections.with { |raw| rows(raw, triggers.installed) }
        installed = found.flat_map { |name, schema| [name, ("#{schema}.#{name}" if schema)] }
        @installed = [installed, now + CHECKED_FOR]
        installed
      rescue StandardError
        raise unless known

        @installed = [known, now + COUNTED_FOR]
        known
      end

      def noted(tags, url, fields, since)
        list, url, fields = [tags.map { |tag| Triggers.literal(tag) }.join(", "), Triggers.literal(url), Triggers.literal(fields)]
        sql = "SELECT count(*) FROM castellan_urls WHERE tag IN (#{list}) AND url = #{url} AND fields = #{fields} AND at > #{since}"
        @connections.with { |raw| rows(raw, sql) }.flatten.first.to_i
      end

      def triggers = Triggers.for(@connections.dialect)
      def postgres? = @connections.dialect == :postgres

      def rows(raw, sql)
        return raw.exec(sql).values if postgres?

        raw.execute(sql).map { |row| row.is_a?(Hash) ? row.values : row.to_a }
      end

      def columns(table)
        return [] if postgres?

        @connections.with { |raw| rows(raw, "SELECT name FROM pragma_table_xinfo(#{Triggers.literal(table)}) WHERE hidden <> 1").flatten }
      end
    end
  end
end
