# frozen_string_literal: true

require "digest"
require "sequel"
require_relative "database_url"
require_relative "schema"
require_relative "seeds"

# Creates and fills the database of the mail log apps. `bin/setup` installs the gems before.
#
#   DATABASE_URL=sqlite3:/data/mail_logs.sqlite3 MULTIPLIER=2 ruby shared/setup.rb
#
# Does nothing if the same code has filled the database with the same multiplier. Otherwise it drops the
# tables that an earlier run marked. Runs in one transaction.
class Setup
  # Raised if other tables have the same names, the database is unreachable, or the multiplier is not a
  # number.
  class Refused < StandardError; end

  def initialize(url: DatabaseUrl.new, multiplier: ENV.fetch("MULTIPLIER", "1"))
    @url = url
    @multiplier = Integer(multiplier, 10, exception: false)
    raise Refused, "MULTIPLIER is #{multiplier.inspect}: write a whole number, 1 or more" unless @multiplier&.positive?
  end

  # @return [String] a sentence about what was done
  def call
    Sequel.connect(@url.for_sequel) { |database| fill(database) }
  rescue Sequel::DatabaseConnectionError => e
    raise Refused, "cannot open #{@url} (#{e.message.lines.first.chomp}): start the server and create the database, " \
                   "or unset DATABASE_URL to use SQLite"
  end

  private

  def fill(database)
    schema = Schema.new(database)
    return "#{@url} is ready: #{database[:mail_logs].count} mail logs." if filled?(database)

    refuse_tables_of_others(schema)
    database.transaction { recreate(database, schema) }
    database.run("ANALYZE")
    "#{@url} now has #{database[:mail_logs].count} mail logs."
  end

  def filled?(database)
    database.table_exists?(:mail_logs_seeds) && database[:mail_logs_seeds].get(:fingerprint) == fingerprint
  end

  def refuse_tables_of_others(schema)
    names = schema.existing
    return if names.empty? || names.include?(:mail_logs_seeds)

    raise Refused, "#{@url} already has #{names.join(", ")}, not made by this program: name another database in DATABASE_URL"
  end

  def recreate(database, schema)
    schema.drop
    schema.create
    Seeds.new(database, multiplier: @multiplier).insert
    database[:mail_logs_seeds].insert(fingerprint: fingerprint)
  end

  # A digest of the code that creates the rows, so that an outdated database is filled again.
  def fingerprint
    sources = %w[schema.rb seeds.rb].map { |name| File.binread(File.join(__dir__, name)) }
    "#{@multiplier}-#{Digest::SHA256.hexdigest(sources.join)[0, 16]}"
  end
end

if $PROGRAM_NAME == __FILE__
  begin
    puts Setup.new.call
  rescue Setup::Refused, ArgumentError => e
    abort "mail_logs: #{e.message}"
  end
end
