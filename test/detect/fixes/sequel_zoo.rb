# frozen_string_literal: true

require "test_helper"
require "sequel"

# Every kind of association of Sequel, in its own SQLite with unique tables: 6 keepers with a badge, 3 keys
# and 2
# animals each; an animal has 2 meals, each fed by a keeper, and 2 tricks; keepers have a boss.
#
#   SequelZoo::Keeper.all.each(&:badge)
module SequelZoo
  DIRECTORY = Dir.mktmpdir("castellan-zoo")
  DB = Sequel.sqlite(File.join(DIRECTORY, "zoo.sqlite3"))
  Minitest.after_run do
    DB.disconnect
    FileUtils.rm_rf(DIRECTORY)
  end

  TABLES = {
    szoo_keepers: { name: String, boss_id: Integer }, szoo_badges: { keeper_id: Integer },
    szoo_room_keys: { keeper_id: Integer, lost: TrueClass, door: Integer },
    szoo_animals: { keeper_id: Integer, kind: String, name: String },
    szoo_manes: { animal_id: Integer, colour: String }, szoo_meals: { animal_id: Integer, feeder_id: Integer },
    szoo_tricks: { name: String }, szoo_animals_tricks: { animal_id: Integer, trick_id: Integer }
  }.freeze
  TABLES.each do |table, columns|
    DB.create_table(table) do
      primary_key :id
      columns.each { |name, type| column(name, type) }
    end
  end

  class Keeper < Sequel::Model(DB[:szoo_keepers])
    many_to_one :boss, class: "SequelZoo::Keeper"
    one_to_many :staff, class: "SequelZoo::Keeper", key: :boss_id
    one_to_one :badge, class: "SequelZoo::Badge"
    one_to_many :room_keys, class: "SequelZoo::RoomKey"
    one_to_many :animals, class: "SequelZoo::Animal"
  end

  class Badge < Sequel::Model(DB[:szoo_badges])
    many_to_one :keeper, class: "SequelZoo::Keeper"
  end

  class RoomKey < Sequel::Model(DB[:szoo_room_keys])
    many_to_one :keeper, class: "SequelZoo::Keeper"
    dataset_module { where :working, lost: false }
  end

  class Animal < Sequel::Model(DB[:szoo_animals])
    plugin :single_table_inheritance, :kind
    many_to_one :keeper, class: "SequelZoo::Keeper"
    one_to_many :meals, class: "SequelZoo::Meal", key: :animal_id
    one_to_one(:newest_meal, class: "SequelZoo::Meal", key: :animal_id) { |meals| meals.where(feeder_id: 2).order(Sequel.desc(:id)) }
    one_to_one :lazy_meal, class: "SequelZoo::Meal", key: :animal_id, allow_eager: false do |meals|
      meals.where(feeder_id: 3).order(Sequel.desc(:id))
    end
    many_to_many :tricks, class: "SequelZoo::Trick", join_table: :szoo_animals_tricks, left_key: :animal_id
  end

  class Lion < Animal
    one_to_one :mane, class: "SequelZoo::Mane", key: :animal_id
  end

  class Zebra < Animal
  end

  class Mane < Sequel::Model(DB[:szoo_manes])
  end

  class Meal < Sequel::Model(DB[:szoo_meals])
    many_to_one :animal, class: "SequelZoo::Animal"
    many_to_one :feeder, class: "SequelZoo::Keeper"
  end

  class Trick < Sequel::Model(DB[:szoo_tricks])
  end

  boss = nil
  6.times do |number|
    keeper = Keeper.create(name: "keeper #{number}", boss: boss)
    boss ||= keeper
    Badge.create(keeper: keeper)
    3.times { |door| RoomKey.create(keeper: keeper, lost: door == 2, door: door) }
    [Lion, Zebra].each do |kind|
      animal = kind.create(keeper: keeper, name: "animal")
      2.times { |trick| animal.add_trick(Trick.create(name: "trick #{trick}")) }
      Mane.create(animal_id: animal.id, colour: "gold") if kind == Lion
      2.times { Meal.create(animal: animal, feeder: keeper) }
    end
  end
  DB.freeze
end
