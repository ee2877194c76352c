# frozen_string_literal: true

require "test_helper"
require "active_record"

# Every kind of association of ActiveRecord, in its own SQLite with unique tables: 6 keepers with a badge, 2
# keys and 2 animals each; an animal has 2 meals, each fed by a keeper, 2 tricks and, if it is a lion, 1 mane;
# notes belong to keepers and animals; keepers have a boss; 4 pens of composite keys have 2 troughs each.
#
#   ActiveRecordZoo::Keeper.all.each(&:badge)
module ActiveRecordZoo
  DIRECTORY = Dir.mktmpdir("castellan-zoo")
  Minitest.after_run { FileUtils.rm_rf(DIRECTORY) }

  class Base < ActiveRecord::Base
    self.abstract_class = true
    self.table_name_prefix = "zoo_"
    establish_connection(adapter: "sqlite3", database: File.join(DIRECTORY, "zoo.sqlite3"), pool: 20)
  end

  class Keeper < Base
    belongs_to :boss, class_name: "ActiveRecordZoo::Keeper", optional: true
    has_many :staff, class_name: "ActiveRecordZoo::Keeper", foreign_key: :boss_id, inverse_of: :boss
    has_one :badge
    has_many :room_keys
    has_many :animals
    has_many :meals, through: :animals
    has_one :first_animal, -> { order(:id) }, class_name: "ActiveRecordZoo::Animal"
    has_one :first_meal, through: :first_animal, source: :meals
    has_many :notes, as: :subject
  end

  class Badge < Base
    belongs_to :keeper
  end

  class RoomKey < Base
    belongs_to :keeper
    scope :working, -> { where(lost: false) }
  end

  class Animal < Base
    belongs_to :keeper
    has_many :meals
    has_one :newest_meal, -> { where(feeder_id: 2).order(id: :desc) }, class_name: "ActiveRecordZoo::Meal"
    has_one :limited_meal, -> { where(feeder_id: 3).order(id: :desc).limit(1) }, class_name: "ActiveRecordZoo::Meal"
    has_one :guarded_meal, -> { where(feeder_id: 4).order(id: :desc) }, class_name: "ActiveRecordZoo::Meal"
    has_many :notes, as: :subject
    has_and_belongs_to_many :tricks, join_table: "zoo_animals_tricks"
    def guarded_meal = (super if keeper_id == 1)
  end

  class Lion < Animal
    has_one :mane, foreign_key: :animal_id
  end

  class Zebra < Animal
  end

  class Mane < Base
    belongs_to :lion, foreign_key: :animal_id
  end

  class Meal < Base
    belongs_to :animal
    belongs_to :feeder, class_name: "ActiveRecordZoo::Keeper"
  end

  class Trick < Base
  end

  class Note < Base
    belongs_to :subject, polymorphic: true
  end

  KEYS = ActiveRecord.version >= Gem::Version.new("7.2") ? :foreign_key : :query_constraints

  class Pen < Base
    self.primary_key = %i[wing number]
    has_many :troughs, class_name: "ActiveRecordZoo::Trough", KEYS => %i[pen_wing pen_number]
  end

  class Trough < Base
  end

  Base.connection.instance_eval do
    create_table(:zoo_pens, primary_key: %i[wing number]) { |t| [t.integer(:wing), t.integer(:number)] }
    create_table(:zoo_troughs) { |t| [t.integer(:pen_wing), t.integer(:pen_number), t.boolean(:full)] }
    create_table(:zoo_keepers) { |t| [t.string(:name), t.integer(:boss_id)] }
    create_table(:zoo_badges) { |t| t.integer(:keeper_id) }
    create_table(:zoo_room_keys) { |t| [t.integer(:keeper_id), t.boolean(:lost, default: false), t.integer(:door)] }
    create_table(:zoo_animals) { |t| [t.integer(:keeper_id), t.string(:type), t.string(:name)] }
    create_table(:zoo_manes) { |t| [t.integer(:animal_id), t.string(:colour)] }
    create_table(:zoo_meals) { |t| [t.integer(:animal_id), t.integer(:feeder_id)] }
    create_table(:zoo_tricks) { |t| t.string(:name) }
    create_table(:zoo_animals_tricks, id: false) { |t| [t.integer(:animal_id), t.integer(:trick_id)] }
    create_table(:zoo_notes) { |t| [t.integer(:subject_id), t.string(:subject_type), t.string(:text)] }
  end

  [1, 2].product([1, 2]).each do |wing, number|
    Pen.create!(wing: wing, number: number)
    [true, false].each { |full| Trough.create!(pen_wing: wing, pen_number: number, full: full) }
  end

  boss = nil
  6.times do |number|
    keeper = Keeper.create!(name: "keeper #{number}", boss: boss)
    boss ||= keeper
    Badge.create!(keeper: keeper)
    3.times { |door| RoomKey.create!(keeper: keeper, lost: door == 2, door: door) }
    Note.create!(subject: keeper, text: "of a keeper")
    [Lion, Zebra].each do |kind|
      animal = kind.create!(keeper: keeper, name: "animal", tricks: Array.new(2) { |trick| Trick.create!(name: "trick #{trick}") })
      Mane.create!(animal_id: animal.id, colour: "gold") if kind == Lion
      Note.create!(subject: animal, text: "of an animal")
      2.times { Meal.create!(animal: animal, feeder: keeper) }
    end
  end
end
