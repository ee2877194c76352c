# frozen_string_literal: true

require "sequel"
require "castellan/rows"

# Declares each kind of association that Sequel has (knights, quests, steeds) and a table with a column of
# each type.
module SequelKindsWorld
  POINTS = Class.new do
    def self.call(text) = text.split(";").map(&:to_i)
    def self.dump(points) = points.join(";")
  end

  class << self
    def sqlite = @sqlite ||= build(:SequelKindsOnSqlite, Sequel.sqlite)

    def postgres = @postgres ||= build(:SequelKindsOnPostgres, Sequel.connect(Castellan::TestServers.postgres_url))

    private

    def build(name, database)
      database.timezone = :utc
      database.extension(:pg_json, :pg_array) if database.database_type == :postgres
      world = Object.const_set(name, Module.new)
      world.const_set(:DB, database)
      tables(database)
      types(database)
      models(world, database)
      world
    end

    def tables(database)
      database.create_table!(:knights) do
        primary_key :id
        String :name
        String :crest
        Integer :liege_id
      end
      database.create_table!(:quests) do
        primary_key :id
        String :title
        Integer :weight
        Integer :knight_id
        String :crest
      end
      database.create_table!(:steeds) do
        Integer :stall
        Integer :place
        String :name
        Integer :knight_id
        primary_key %i[stall place]
      end
      database.create_table!(:rides) do
        primary_key :id
        Integer :quest_id
        Integer :stall
        Integer :place
      end
      database.create_table!(:companions) do
        Integer :knight_id
        Integer :quest_id
      end
    end

    # Has a column of each type of the database; a document writes what Sequel converts it to.
    def types(database)
      postgres = database.database_type == :postgres
      database.create_table!(:relics) do
        primary_key :id
        Integer :whole
        column :large, :bigint
        String :name
        String :story, text: true
        TrueClass :holy
        Float :weight
        BigDecimal :price, size: [12, 2]
        Date :found_on
        DateTime :seen_at
        File :raw
        String :points
        if postgres
          column :document, :jsonb
          column :plain_document, :json
          column :token, :uuid
          column :zoned_at, :timestamptz
          column :words, "text[]"
          column :numbers, "integer[]"
          column :address, :inet
          column :span, :interval
          column :daily_at, :time
        end
      end
    end

    def models(world, database)
      knight = world.const_set(:Knight, Class.new(Sequel::Model(database[:knights])))
      quest = world.const_set(:Quest, Class.new(Sequel::Model(database[:quests])))
      steed = world.const_set(:Steed, Class.new(Sequel::Model(database[:steeds])))
      ride = world.const_set(:Ride, Class.new(Sequel::Model(database[:rides])))
      of_knight(knight, quest, steed)
      of_weight(world, knight, quest)
      quest.many_to_one :knight, class: knight
      quest.many_to_one :herald, class: knight, key: :crest, primary_key: :crest
      quest.many_to_many :companions, class: knight, join_table: :companions, left_key: :quest_id, right_key: :knight_id
      quest.one_to_many :rides, class: ride, key: :quest_id
      ride.many_to_one :steed, class: steed, key: %i[stall place]
      steed.one_to_many :rides, class: ride, key: %i[stall place]
      steed.many_to_one :knight, class: knight
      relic = world.const_set(:Relic, Class.new(Sequel::Model(database[:relics])))
      relic.plugin :serialization
      relic.serialize_attributes [POINTS.method(:dump), POINTS.method(:call)], :points
    end

    def of_knight(knight, quest, steed)
      knight.plugin :many_through_many
      knight.many_to_one :liege, class: knight
      knight.one_to_many :vassals, class: knight, key: :liege_id
      knight.one_to_many :quests, class: quest, key: :knight_id
      knight.one_to_many :crest_quests, class: quest, key: :crest, primary_key: :crest
      knight.one_to_one :heaviest, class: quest, key: :knight_id, order: Sequel.desc(:weight)
      knight.one_to_one :second, class: quest, key: :knight_id, order: %i[weight id], limit: [1, 1]
      knight.one_to_many :two_lightest, class: quest, key: :knight_id, order: %i[weight id], limit: 2
      knight.one_to_many :next_two, class: quest, key: :knight_id, order: %i[weight id], limit: [2, 1]
      knight.one_to_many(:grave, class: quest, key: :knight_id, order: :id) { |dataset| dataset.where { weight > 2 } }
      knight.one_to_many(:own_or_gravest, class: quest, key: :knight_id, order: :id) { |dataset| dataset.or { weight > 4 } }
      knight.one_to_one(:gravest, class: quest, key: :knight_id, order: Sequel.desc(:weight)) { |dataset| dataset.or { weight > 4 } }
      knight.one_to_many(:own_or_grave, class: quest, key: :knight_id, order: :id) { |ds| ds.or { weight > 2 }.where { weight < 6 } }
      knight.one_through_one :crest_knight, class: knight, join_table: :quests, left_key: :crest, left_primary_key: :crest,
                                            right_key: :knight_id, order: Sequel.desc(:id) # which both tables have
      knight.one_to_many(:own_crest, class: quest, key: :knight_id, order: :id, instance_specific: true) do |dataset|
        dataset.where(crest: crest)
      end
      knight.one_to_many :conditional, class: quest, key: :knight_id, conditions: { weight: 1..3 }, order: :id
      knight.many_to_many :shared, class: quest, join_table: :companions, left_key: :knight_id, right_key: :quest_id
      knight.one_through_one :first_shared, class: quest, join_table: :companions, left_key: :knight_id, right_key: :quest_id,
                                            order: Sequel[:quests][:id]
      knight.many_through_many :fellow_rides, [%i[companions knight_id quest_id], %i[rides quest_id stall]], class: knight,
                                                                                                             right_primary_key: :id
      knight.one_to_many :steeds, class: steed, key: :knight_id
    end

    # Associations to quests of the weight of the current thread, and to those of a model with a default dataset.
    def of_weight(world, knight, quest)
      present = -> { Thread.current[:weight] }
      kept = world.const_set(:KeptQuest, Class.new(Sequel::Model(quest.db[:quests].where { weight > 2 })))
      chosen = world.const_set(:ChosenQuest, Class.new(Sequel::Model(quest.db[:quests].where(weight: Sequel.delay(&present)))))
      knight.one_to_many(:block_quests, class: quest, key: :knight_id) { |dataset| dataset.where(weight: present.call) }
      knight.one_to_many(:method_quests, class: quest, key: :knight_id) { |dataset| dataset.where { weight <= Thread.current[:weight] } }
      knight.one_to_many :delayed_quests, class: quest, key: :knight_id, conditions: { weight: Sequel.delay(&present) }
      knight.one_to_many :kept_quests, class: kept, key: :knight_id
      knight.one_to_many :chosen_quests, class: chosen, key: :knight_id
      joined = { join_table: :companions, left_key: :knight_id, right_key: :quest_id }
      knight.many_to_many(:shared_quests, class: quest, **joined) { |dataset| dataset.where(weight: present.call) }
      knight.many_to_many :shared_kept_quests, class: kept, **joined
      knight.many_to_many :shared_chosen_quests, class: chosen, **joined
      knight.one_to_one(:block_quest, class: quest, key: :knight_id, order: :id) { |dataset| dataset.where(weight: present.call) }
    end
  end
end
