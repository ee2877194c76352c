# frozen_string_literal: true

require "active_record"
require "sequel"
require "tmpdir"

# Guilds, knights, quests, rides and steeds, with associations of every kind, as models of ActiveRecord or of Sequel; and the same
# rows as hashes, from which a document can be worked out in Ruby alone.
#
#   world = ScopesWorld.active_record(:sqlite)   # or :postgres, or ScopesWorld.sequel(…); one each a process
#   world.fill(guilds: [{ id: 1, name: "Rose", level: 2 }], …)
#   world.models[:knights]                       # => the model
#   ScopesWorld::RELATED.fetch(:knights)[:guild] # => [macro, tables at its end, what it leads to, in Ruby]
module ScopesWorld
  TABLES = { guilds: {}, knights: { guild_id: :integer, liege_id: :integer, type: :string },
             quests: { knight_id: :integer, target_id: :integer, target_type: :string },
             rides: { quest_id: :integer, steed_id: :integer }, steeds: { owner_id: :integer } }.freeze
  CLASSES = { guilds: "Guild", knights: "Knight", quests: "Quest", rides: "Ride", steeds: "Steed" }.freeze

  BEST = ->(rows) { rows.sort_by { |row| [-row[:level], -row[:id]] } }
  FIND = ->(all, table, id) { [all[table].find { |row| row[:id] == id }].compact.map { |row| [table, row] } }
  WHERE = ->(all, table, key, id) { all[table].select { |row| row[key] == id }.map { |row| [table, row] } }
  # By table and association: its macro, the tables that it leads to, and from a row of all rows to pairs of table and row.
  RELATED = {
    guilds: {
      knights: [:has_many, %i[knights], ->(all, row) { WHERE.call(all, :knights, :guild_id, row[:id]) }],
      quests: [:has_many, %i[quests], ->(all, row) {
        WHERE.call(all, :knights, :guild_id, row[:id]).flat_map { |_, knight| WHERE.call(all, :quests, :knight_id, knight[:id]) }
      }],
      master: [:has_one, %i[knights], ->(all, row) {
        BEST.call(WHERE.call(all, :knights, :guild_id, row[:id]).map(&:last)).first(1).map { |one| [:knights, one] }
      }],
      best_knights: [:has_many, %i[knights], ->(all, row) {
        BEST.call(WHERE.call(all, :knights, :guild_id, row[:id]).map(&:last)).first(2).map { |one| [:knights, one] }
      }]
    },
    knights: {
      guild: [:belongs_to, %i[guilds], ->(all, row) { FIND.call(all, :guilds, row[:guild_id]) }],
      liege: [:belongs_to, %i[knights], ->(all, row) { FIND.call(all, :knights, row[:liege_id]) }],
      vassals: [:has_many, %i[knights], ->(all, row) { WHERE.call(all, :knights, :liege_id, row[:id]) }],
      quests: [:has_many, %i[quests], ->(all, row) { WHERE.call(all, :quests, :knight_id, row[:id]) }],
      steed: [:has_one, %i[steeds], ->(all, row) {
        [WHERE.call(all, :steeds, :owner_id, row[:id]).min_by { |_, one| one[:id] }].compact
      }]
    },
    quests: {
      knight: [:belongs_to, %i[knights], ->(all, row) { FIND.call(all, :knights, row[:knight_id]) }],
      target: [:belongs_to, %i[guilds steeds], ->(all, row) {
        table = { "Guild" => :guilds, "Steed" => :steeds }[row[:target_type].to_s.split("::").last]
        table ? FIND.call(all, table, row[:target_id]) : []
      }],
      rides: [:has_many, %i[rides], ->(all, row) { WHERE.call(all, :rides, :quest_id, row[:id]) }],
      steeds: [:has_many, %i[steeds], ->(all, row) {
        WHERE.call(all, :rides, :quest_id, row[:id]).flat_map { |_, ride| FIND.call(all, :steeds, ride[:steed_id]) }
      }]
    },
    rides: {
      quest: [:belongs_to, %i[quests], ->(all, row) { FIND.call(all, :quests, row[:quest_id]) }],
      steed: [:belongs_to, %i[steeds], ->(all, row) { FIND.call(all, :steeds, row[:steed_id]) }]
    },
    steeds: {
      owner: [:belongs_to, %i[knights], ->(all, row) { FIND.call(all, :knights, row[:owner_id]) }],
      rides: [:has_many, %i[rides], ->(all, row) { WHERE.call(all, :rides, :steed_id, row[:id]) }]
    }
  }.freeze
  # Paths of to-one associations, by table.
  PATHS = { guilds: %w[master.name master.steed.name], knights: %w[guild.name liege.name liege.guild.name liege.liege.level steed.name],
            quests: %w[knight.name knight.guild.level knight.liege.name], rides: %w[quest.name quest.knight.guild.name steed.owner.name],
            steeds: %w[owner.name owner.guild.name] }.freeze

  class << self
    def active_record(database) = (@active_record ||= {})[database] ||= OfActiveRecord.new(database)
    def sequel(database) = (@sequel ||= {})[database] ||= OfSequel.new(database)
  end

  # Shared by both.
  class World
    attr_reader :models, :rows, :postgres

    def initialize(database)
      @postgres = database == :postgres
      connect
      TABLES.each_key { |table| create(table) }
      declare
    end

    # @param rows [Hash{Symbol => Array<Hash>}] by table
    def fill(rows)
      @rows = rows
      TABLES.each_key do |table|
        run("DELETE FROM #{table}")
        rows.fetch(table).each do |row|
          run("INSERT INTO #{table} (#{row.keys.join(", ")}) VALUES (#{row.values.map { |value| literal(value) }.join(", ")})")
        end
      end
    end

    private

    def directory = Dir.mktmpdir("castellan-scopes").tap { |path| Minitest.after_run { FileUtils.remove_entry(path) } }

    def literal(value)
      return "NULL" if value.nil?

      value.is_a?(String) ? "'#{value}'" : value.to_s
    end

    def create(table)
      columns = TABLES[table].map { |name, type| ", #{name} #{type == :string ? "varchar(40)" : "bigint"}" }.join
      run("CREATE TABLE #{table} (id #{@postgres ? "bigint" : "integer"} PRIMARY KEY, name varchar(40), level integer#{columns})")
    end
  end

  # Models of ActiveRecord.
  class OfActiveRecord < World
    def orm = :active_record
    def run(sql) = @space::Base.connection.execute(sql)
    def database = @space::Base

    def queries
      found = []
      subscriber = ActiveSupport::Notifications.subscribe("sql.active_record") { |*, event| found << event[:sql] unless event[:name] == "SCHEMA" }
      yield
      found.grep_v(/castellan_version|sqlite_master|pg_/)
    ensure
      ActiveSupport::Notifications.unsubscribe(subscriber)
    end

    def name_of(table) = "#{@space.name}::#{CLASSES.fetch(table)}"
    def paladin = @space::Paladin
    def stall = @space::Stall

    private

    def connect
      @space = Object.const_set(@postgres ? :ScopesOnPostgres : :ScopesOnSqlite, Module.new)
      @space.const_set(:Base, Class.new(ActiveRecord::Base) { self.abstract_class = true })
      url = @postgres ? Castellan::TestServers.postgres_url : { adapter: "sqlite3", database: File.join(directory, "scopes.sqlite3") }
      @space::Base.establish_connection(url)
    end

    def declare
      @space.module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
        class Guild < Base
          has_many :knights
          has_many :quests, through: :knights
          has_one :master, -> { order(level: :desc, id: :desc) }, class_name: "Knight"
          has_many :stalls, foreign_key: :guild_id
          has_many :best_knights, -> { order(level: :desc, id: :desc).limit(2) }, class_name: "Knight"
        end
        class Knight < Base
          belongs_to :guild, optional: true
          belongs_to :liege, class_name: "Knight", optional: true
          has_many :vassals, class_name: "Knight", foreign_key: :liege_id
          has_many :quests
          has_one :steed, -> { order(:id) }, foreign_key: :owner_id
        end
        class Paladin < Knight; end
        class Quest < Base
          belongs_to :knight, optional: true
          belongs_to :target, polymorphic: true, optional: true
          has_many :rides
          has_many :steeds, through: :rides
        end
        class Stall < Base; self.primary_key = %i[town number]; end
        class Ride < Base; belongs_to :quest, optional: true; belongs_to :steed, optional: true; end
        class Steed < Base; belongs_to :owner, class_name: "Knight", optional: true; has_many :rides; end
      RUBY
      run("CREATE TABLE stalls (town integer, number integer, guild_id bigint, level integer, PRIMARY KEY (town, number))")
      @models = CLASSES.to_h { |table, name| [table, @space.const_get(name)] }
    end
  end

  # Models of Sequel, which has no polymorphic associations.
  class OfSequel < World
    def orm = :sequel

    # The statements that a logger receives.
    class Log < Array
      def info(line) = push(line)
      alias error info
    end

    def run(sql) = @db.run(sql)
    def database = @db

    def queries
      @db.loggers << (log = Log.new)
      yield
      log.to_a.grep_v(/castellan_version|sqlite_master|pg_|PRAGMA/).map { |line| line.sub(/\A\(.*?s\) /, "") }
    ensure
      @db.loggers.delete(log)
    end

    def name_of(table) = CLASSES.fetch(table)

    private

    def connect
      @db = @postgres ? Sequel.connect(Castellan::TestServers.postgres_url) : Sequel.sqlite(File.join(directory, "scopes.sqlite3"))
    end

    def declare
      @models = CLASSES.to_h { |table, _| [table, Class.new(Sequel::Model(@db[table]))] }
      guild, knight, quest, ride, steed = @models.values
      guild.one_to_many :knights, class: knight, key: :guild_id
      guild.many_to_many :quests, class: quest, join_table: :knights, left_key: :guild_id, right_key: :id, right_primary_key: :knight_id
      guild.one_to_one :master, class: knight, key: :guild_id, order: [Sequel.desc(:level), Sequel.desc(:id)]
      guild.one_to_many :best_knights, class: knight, key: :guild_id, order: [Sequel.desc(:level), Sequel.desc(:id)], limit: 2
      knight.many_to_one :guild, class: guild, key: :guild_id
      knight.many_to_one :liege, class: knight, key: :liege_id
      knight.one_to_many :vassals, class: knight, key: :liege_id
      knight.one_to_many :quests, class: quest, key: :knight_id
      knight.one_to_one :steed, class: steed, key: :owner_id, order: :id
      quest.many_to_one :knight, class: knight, key: :knight_id
      quest.one_to_many :rides, class: ride, key: :quest_id
      quest.many_to_many :steeds, class: steed, join_table: :rides, left_key: :quest_id, right_key: :steed_id
      ride.many_to_one :quest, class: quest, key: :quest_id
      ride.many_to_one :steed, class: steed, key: :steed_id
      steed.many_to_one :owner, class: knight, key: :owner_id
      steed.one_to_many :rides, class: ride, key: :steed_id
    end
  end
end
