# frozen_string_literal: true

require "logger"
require "sequel"
require "castellan/rows"

# Sets up mail logs with companies, categories and tags, and a view without a key, in one database.
#
#   SequelWorld.sqlite::MailLog.count
module SequelWorld
  class << self
    # @return [Module] with DB and the models
    def sqlite
      @sqlite ||= build(:SequelOnSqlite, Sequel.sqlite)
    end

    def postgres
      @postgres ||= build(:SequelOnPostgres, Sequel.connect(Castellan::TestServers.postgres_url))
    end

    private

    def build(name, database)
      database.timezone = :utc
      tables(database)
      world = Object.const_set(name, Module.new)
      world.const_set(:DB, database)
      models(world, database)
      [world::Category, world::Tag, world::Company, world::MailLog].each { |model| model.tap(&:finalize_associations).freeze }
      database.freeze
      world
    end

    def tables(database)
      database.create_table(:categories) {
        primary_key :id
        String :name
      }
      database.create_table(:companies) {
        primary_key :id
        String :name
        String :icon
        foreign_key :parent_id, :companies
      }
      database.create_table(:tags) {
        primary_key :id
        String :label
      }
      database.create_table(:mail_logs) do
        primary_key :id
        Integer :number
        String :comment, text: true
        Date :received_on
        BigDecimal :value_net, size: [12, 2]
        Float :weight
        TrueClass :read
        Time :created_at
        Integer :category_id
        Integer :company_id
      end
      database.create_table(:mail_logs_tags) {
        Integer :mail_log_id
        Integer :tag_id
      }
      database.create_view(:company_statistics, <<~SQL)
        SELECT companies.id AS company_id, companies.name AS company_name, COUNT(mail_logs.id) AS mail_logs_count,
               ROUND(COALESCE(SUM(mail_logs.value_net), 0), 2) AS value_net
        FROM companies LEFT JOIN mail_logs ON mail_logs.company_id = companies.id GROUP BY companies.id, companies.name
      SQL
    end

    def models(world, database)
      model = ->(name, table, &block) { world.const_set(name, Class.new(Sequel::Model(database[table]), &block)) }
      model.call(:Category, :categories)
      model.call(:Tag, :tags)
      company = model.call(:Company, :companies)
      log = model.call(:MailLog, :mail_logs) do
        def comment = super&.strip
      end
      company.many_to_one :parent, class: company, key: :parent_id
      company.one_to_many :children, class: company, key: :parent_id
      company.one_to_many :mail_logs, class: log, key: :company_id
      company.one_to_one :latest_log, class: log, key: :company_id, order: Sequel.desc(:number)
      company.one_to_many :last_two, class: log, key: :company_id, order: Sequel.desc(:number), limit: 2
      company.one_to_many(:heavy_logs, class: log, key: :company_id) { |dataset| dataset.where { weight > 1 } }
      company.one_to_many(:own_logs, class: log, key: :company_id, instance_specific: true) { |dataset| dataset.where(comment: name) }
      log.plugin :tactical_eager_loading
      log.many_to_one :category, class: world::Category
      log.many_to_one :company, class: company
      log.many_to_many :tags, class: world::Tag, left_key: :mail_log_id, right_key: :tag_id, join_table: :mail_logs_tags
    end
  end
end
