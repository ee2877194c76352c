# frozen_string_literal: true

# The one database that both mail log apps read, named by DATABASE_URL and said in the words of each library.
#
#   url = DatabaseUrl.new("sqlite:///data/mail_logs.sqlite3")
#   url.for_active_record # => "sqlite3:/data/mail_logs.sqlite3"
#   url.for_sequel        # => "sqlite:///data/mail_logs.sqlite3"
#
# Understands postgres:// and postgresql:// (passed on as they are) and SQLite files as sqlite3:/path, sqlite:/path,
# sqlite3:///path and sqlite:///path, with an absolute path. Without DATABASE_URL it is mail_logs.sqlite3 beside the two apps.
# In-memory databases are refused: two processes could not share one.
class DatabaseUrl
  DEFAULT = "sqlite3:#{File.expand_path("../mail_logs.sqlite3", __dir__)}".freeze
  POSTGRES = %r{\Apostgres(ql)?://}
  SQLITE = %r{\Asqlite3?:(?://)?(?<path>/[^/?][^?]*)\z}

  attr_reader :path

  # @raise [ArgumentError] when the URL is of neither kind
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
