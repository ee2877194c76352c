# frozen_string_literal: true

module Castellan
  # Caches the compiled statements of a SQLite connection.
  #
  #   SqliteStatements.for(raw_connection).rows("SELECT … WHERE id IN (SELECT value FROM json_each(?))", "[1,2]")   # => [[1], [2]]
  #
  # The cache is part of the connection; SQLite recompiles statements after schema changes. Caches a statement
  # when the same SQL runs for the second time, and resets it before returning the rows. Not thread-safe, like
  # the connection. Before version 2 of the sqlite3 gem a database with open statements cannot be closed, so
  # nothing is cached.
  class SqliteStatements
    # Each statement of a plan may exist twice: for one id, and for many ids.
    LIMIT = 200
    # Longer SQL usually contains ids and does not repeat.
    LONGEST = 4_000
    private_constant :LONGEST

    # @param connection [SQLite3::Database]
    # @return [SqliteStatements]
    def self.for(connection)
      connection.instance_variable_get(:@castellan_statements) || connection.instance_variable_set(:@castellan_statements, new(connection))
    end

    # @return [Boolean] whether the sqlite3 gem can close a database that has open statements
    def self.keeps? = SQLite3::VERSION.to_i >= 2

    def initialize(connection)
      @connection = connection
      @longest = self.class.keeps? ? LONGEST : 0
      @kept = {} # SQL => statement, or false after the first run; least recently used first
    end

    # @return [Integer] the number of cached statements
    def size
      @kept.size
    end

    # @param value [String, nil] the value of the only placeholder
    # @param kept [Boolean] whether to use the cache
    # @return [Array<Array>]
    # @raise [SQLite3::Exception]
    def rows(sql, value = nil, kept: true)
      kept ? with(sql) { |statement| read(statement, value) } : @connection.prepare(sql) { |statement| read(statement, value) }
    end

    # @yieldparam statement [SQLite3::Statement] reset after the block
    # @return the result of the block
    def with(sql)
      known = @kept.delete(sql)
      return once(sql) { |statement| yield statement } if known.nil? || sql.bytesize > @longest

      statement = known || @connection.prepare(sql)
      begin
        answer = yield statement
        statement.reset!
        kept = keep(sql, statement)
        answer
      ensure
        drop(statement) unless kept # Timeout uses `throw`; an open statement would keep its snapshot and its lock
      end
    end

    private

    def read(statement, value)
      statement.bind_param(1, value) if value
      rows = []
      while (row = statement.step)
        rows << row
      end
      rows
    end

    def once(sql, &block)
      @connection.prepare(sql, &block).tap { keep(sql, false) if sql.bytesize <= @longest }
    end

    # Another statement that ran in between may have cached the same SQL.
    def keep(sql, statement)
      drop(@kept.delete(sql)) if @kept.key?(sql)
      drop(@kept.shift.last) if @kept.size >= LIMIT
      @kept[sql] = statement
    end

    def drop(statement)
      statement.close if statement && !statement.closed?
    end
  end
end
