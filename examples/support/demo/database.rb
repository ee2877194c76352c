# frozen_string_literal: true

require "socket"
require "uri"

module Castellan
  module Demo
    # Selects the database of the examples: DATABASE_URL if its server responds, otherwise SQLite.
    #
    #   Database.chosen("postgres://localhost/castellan", $stderr).environment   # => { "DATABASE_URL" => "postgres://…" }
    class Database
      PORT = 5432
      KNOWN = /\A(?:postgres(?:ql)?|sqlite3?):/
      MISSING = /no database at database_url|database "[^"]*" does not exist|could not connect|connection refused/i
      HOW = "On Debian: apt-get install postgresql, then createdb castellan and DATABASE_URL=postgres:///castellan. Going on with SQLite."
      private_constant :PORT, :KNOWN, :MISSING, :HOW

      # @return [String, nil] nil for SQLite, in the files of the examples
      attr_reader :url

      # @param url [String, nil]
      # @param out [IO] receives a hint how to get the database if it is missing
      # @return [Database]
      def self.chosen(url, out)
        return new(nil) if url.to_s.empty?
        raise ConfigurationError, "DATABASE_URL: the examples know postgres: and sqlite3:, not #{url[/\A[^:]*/]}:" unless url.match?(KNOWN)

        database = new(url)
        return database if database.there?

        out.puts "There is no database server at DATABASE_URL (#{database}). #{HOW}"
        new(nil)
      end

      def initialize(url)
        @url = url
      end

      # Returns SQLite if the setup of an example failed because the database is missing.
      # @param error [Error] the error of the setup
      # @param out [IO] receives a hint how to get the database
      # @return [Database]
      # @raise [Error] the given error, if it has another cause
      def instead(error, out)
        raise error unless url && error.message.match?(MISSING)

        out.puts "The database at DATABASE_URL (#{self}) cannot be used: #{error.message.lines.last.to_s.strip} #{HOW}"
        Database.new(nil)
      end

      # @return [Boolean] whether a server listens; true for the path of a file
      def there?
        uri = URI.parse(url)
        return true unless uri.scheme.to_s.start_with?("postgres")
        return Dir.glob("{/var/run/postgresql,/tmp}/.s.PGSQL.*").any? if uri.host.to_s.empty?

        TCPSocket.new(uri.host, uri.port || PORT).close
        true
      rescue SystemCallError, SocketError, URI::InvalidURIError
        false
      end

      # @return [Hash{String => String, nil}] always sets the variable, so that a process does not inherit
      #   another value
      def environment
        { "DATABASE_URL" => url }
      end

      # @return [String] without user name and password
      def to_s
        url ? PublicUrl.of(url) : "SQLite"
      end
    end
  end
end
