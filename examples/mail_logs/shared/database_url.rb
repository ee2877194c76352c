# frozen_string_literal: true

# Converts DATABASE_URL to the format of each library.
#
#   url = DatabaseUrl.new("sqlite:///data/mail_logs.sqlite3")
#   url.for_active_record # => "sqlite3:/data/mail_logs.sqlite3"
#   url.for_sequel        # => "sqlite:///data/mail_logs.sqlite3"
#
# Accepts postgres:// and postgresql:// unchanged, and the absolute path of a SQLite file as sqlite3:/path,
# sqlite:/path, sqlite3:///path or sqlite:///path. The default is mail_logs.sqlite3 in the folder of the
# example. Raises for an in-memory database, because two processes cannot share it.
class DatabaseUrl
  DEFAULT = "sqlite3:#{File.expand_path("../mail_logs.sqlite3", __dir__)}".freeze
  POSTGRES = %r{\Apostgres(ql)?://}
  SQLITE = %r{\Asqlite3?:(?://)?(?<path>/[^/?][^?]*)\z}

  attr_reader :path

  # @raise [ArgumentError] for another URL
  def initialize(url = ENV.fetch("DATABASE_URL", ""))
    @url = url.empty? ? DEFAULT : url
    return if postgres?

    @path = @url[SQLITE, :path] or raise ArgumentError, "DATABASE_URL #{@url.inspect} names no database these apps can share: " \
                                                        "write postgres://host/name or sqlite3:/absolute/path.sqlite3"
  end

  def postgres?
    POSTGRES.match?(@url)
  end

  # @return [String] for ActiveRecord
  def for_active_record
    postgres? ? @url : "sqlite3:#{path}"
  end

  # @return [String] for Sequel
  def for_sequel
    postgres? ? @url : "sqlite://#{path}"
  end

  # @return [String] without the password, for messages
  def to_s
    postgres? ? @url.sub(%r{(://[^:/@]*):[^@/]*@}, '\1:…@') : for_active_record
  end
end
