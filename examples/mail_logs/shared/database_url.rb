# frozen_string_literal: true

# Converts DATABASE_URL, which both mail log apps read, to the syntax of each library.
#
#   url = DatabaseUrl.new("sqlite:///data/mail_logs.sqlite3")
#   url.for_active_record # => "sqlite3:/data/mail_logs.sqlite3"
#   url.for_sequel        # => "sqlite:///data/mail_logs.sqlite3"
#
# Accepts postgres:// and postgresql:// (unchanged) and absolute paths of SQLite files as sqlite3:/path,
# sqlite:/path, sqlite3:///path and sqlite:///path. Default: mail_logs.sqlite3 beside the two apps. In-memory
# databases raise, because two processes cannot share one.
class DatabaseUrl
  DEFAULT = "sqlite3:#{File.expand_path("../mail_logs.sqlite3", __dir__)}".freeze
  POSTGRES = %r{\Apostgres(ql)?://}
  SQLITE = %r{\Asqlite3?:(?://)?(?<path>/[^/?][^?]*)\z}

  attr_reader :path

  # @raise [ArgumentError] for other URLs
  def initialize(url = ENV.fetch("DATABASE_URL", ""))
    @url = url.empty? ? DEFAULT : url
    return if postgres?

    @path = @url[SQLITE, :path] or raise ArgumentError, "DATABASE_URL #{@url.inspect} names no database these apps can share: " \
                                                        "write postgres://host/name or sqlite3:/absolute/path.sqlite3"
  end

  def postgres?
    POSTGRES.match?(@url)
  end

  # @return [String] as ActiveRecord reads it
  def for_active_record
    postgres? ? @url : "sqlite3:#{path}"
  end

  # @return [String] as Sequel reads it
  def for_sequel
    postgres? ? @url : "sqlite://#{path}"
  end

  # @return [String] the URL without its password, for messages
  def to_s
    postgres? ? @url.sub(%r{(://[^:/@]*):[^@/]*@}, '\1:…@') : for_active_record
  end
end
