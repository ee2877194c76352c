# frozen_string_literal: true

# Creates and fills the tables of a Rails example, in one transaction, unless they already have this size.
#
#   Setup.of(%w[users posts], File.expand_path("schema.rb", __dir__))   # in db/setup.rb, after environment and seeds
#
# Drops only tables that it created, which it marks in the table `seedings`. Aborts if there are others.
class Setup
  MARK = "seedings"

  # Prints the result, or aborts and prints the missing step.
  # @param tables [Array<String>]
  # @param schema [String] the file that creates the tables; `Seeds` fills them
  def self.of(tables, schema)
    puts new(tables, schema).call
  rescue ActiveRecord::NoDatabaseError, ActiveRecord::ConnectionNotEstablished => error
    abort "No database at DATABASE_URL: #{error.message.lines.first.to_s.strip}. Create it, or unset DATABASE_URL to use SQLite."
  end

  def initialize(tables, schema)
    @tables = tables
    @schema = schema
  end

  # @return [String] a sentence about what was done
  def call
    create_schema
    return "#{database} holds #{Seeds.fingerprint} already." if seeded_with == Seeds.fingerprint

    refuse_foreign_tables
    connection.transaction { rebuild }
    "#{database} holds #{Seeds.fingerprint} now."
  end

  private

  def rebuild
    @tables.each { |table| connection.drop_table(table, if_exists: true) }
    ActiveRecord::Migration.suppress_messages { load @schema }
    Seeds.new.call
    finish
    leave_mark
  end

  # Advances the sequences past the last id, and updates the statistics of the query planner.
  def finish
    @tables.each do |table|
      connection.reset_pk_sequence!(table) if connection.respond_to?(:reset_pk_sequence!)
      connection.execute("ANALYZE #{connection.quote_table_name(table)}")
    end
  end

  def seeded_with
    connection.select_value("SELECT fingerprint FROM #{MARK}") if connection.table_exists?(MARK)
  end

  def leave_mark
    connection.create_table(MARK, id: false, force: true) { |t| t.string :fingerprint, null: false }
    connection.execute("INSERT INTO #{MARK} (fingerprint) VALUES (#{connection.quote(Seeds.fingerprint)})")
  end

  def refuse_foreign_tables
    return if connection.table_exists?(MARK)

    foreign = @tables.select { |table| connection.table_exists?(table) }
    return if foreign.empty?

    abort "#{database} already has the table #{foreign.first}, which this example did not make. " \
          "Set DATABASE_URL to an empty database, or unset it to use SQLite."
  end

  def create_schema
    schema = ActiveRecord::Base.connection_db_config.configuration_hash[:schema_search_path]
    connection.create_schema(schema, if_not_exists: true) if schema
  end

  def database
    "The #{connection.adapter_name} database #{ActiveRecord::Base.connection_db_config.database}"
  end

  def connection
    ActiveRecord::Base.connection
  end
end
