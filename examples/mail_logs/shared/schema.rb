# frozen_string_literal: true

# Creates the tables and the view of both mail log apps with Sequel, on SQLite or PostgreSQL.
#
#   schema = Schema.new(Sequel.connect("sqlite:///data/mail_logs.sqlite3"))
#   schema.create
#   schema.drop
#
# The table `mail_logs_seeds` marks a database as created here; without it, {#drop} drops nothing.
class Schema
  TABLES = %i[mail_logs companies categories mail_logs_seeds].freeze
  VIEW = :company_statistics

  def initialize(database)
    @database = database
  end

  # @return [Array<Symbol>] those of our names that the database already uses
  def existing
    [*TABLES, VIEW].select { |name| @database.table_exists?(name) }
  end

  def create
    create_owners
    create_mail_logs
    @database.create_table(:mail_logs_seeds) { String :fingerprint, null: false }
    @database.create_view(VIEW, statistics)
  end

  def drop
    @database.drop_view(VIEW, if_exists: true)
    TABLES.each { |name| @database.drop_table?(name) }
  end

  private

  def create_owners
    @database.create_table(:categories) do
      primary_key :id
      String :name, null: false
      Time :created_at, null: false
      Time :updated_at, null: false
    end
    @database.create_table(:companies) do
      primary_key :id
      String :name, null: false
      String :icon
      Time :created_at, null: false
      Time :updated_at, null: false
    end
  end

  def create_mail_logs
    @database.create_table(:mail_logs) do
      primary_key :id
      Integer :number, null: false, unique: true
      String :in_or_out, null: false, size: 3
      Date :document_date_on
      Date :received_on, null: false
      String :external_number
      String :comment, text: true
      BigDecimal :value_net, size: [12, 2]
      BigDecimal :value_vat, size: [12, 2]
      foreign_key :category_id, :categories, null: false, index: true
      foreign_key :company_id, :companies, null: false, index: true
      Time :created_at, null: false
      Time :updated_at, null: false
    end
  end

  # The sums are rounded because SQLite adds decimals as binary fractions.
  def statistics
    <<~SQL
      SELECT companies.id AS company_id,
             companies.name AS company_name,
             COUNT(mail_logs.id) AS mail_logs_count,
             COUNT(CASE WHEN mail_logs.in_or_out = 'in' THEN 1 END) AS incoming_count,
             COUNT(CASE WHEN mail_logs.in_or_out = 'out' THEN 1 END) AS outgoing_count,
             ROUND(COALESCE(SUM(mail_logs.value_net), 0), 2) AS value_net,
             ROUND(COALESCE(SUM(mail_logs.value_vat), 0), 2) AS value_vat,
             MAX(mail_logs.received_on) AS last_received_on
      FROM companies LEFT JOIN mail_logs ON mail_logs.company_id = companies.id
      GROUP BY companies.id, companies.name
    SQL
  end
end
