# frozen_string_literal: true

require_relative "active_record_world"

# Declares each kind of association that ActiveRecord has (halls, seats, guests, notes, vehicles), per
# database.
module AssociationKindsWorld
  TABLES = lambda do |schema|
    schema.create_table(:halls, force: true) { |t| t.string :name, :code, :owner_type and t.bigint :owner_id }
    schema.create_table(:seats, primary_key: %i[row_id number], force: true) do |t|
      t.integer :row_id, :number
      t.string :label
      t.bigint :hall_id
    end
    schema.create_table(:tickets, force: true) do |t|
      t.bigint :guest_id
      t.integer :row_id, :seat_number
      t.string :hall_code
      t.integer :price
    end
    schema.create_table(:guests, force: true) do |t|
      t.string :name, :type
      t.bigint :friend_id
      t.boolean :banned, default: false
    end
    schema.create_table(:remarks, force: true) do |t|
      t.string :about_type, :text
      t.bigint :about_id, :guest_id
      t.integer :weight
    end
    schema.create_table(:friendships, id: false, force: true) { |t| t.bigint :left_id, :right_id }
  end

  class << self
    def sqlite = @sqlite ||= build(:KindsOnSqlite, ActiveRecordWorld.sqlite::Base)

    def postgres = @postgres ||= build(:KindsOnPostgres, ActiveRecordWorld.postgres::Base)

    private

    def build(name, base)
      TABLES.call(base.connection)
      world = Object.const_set(name, Module.new)
      world.const_set(:Base, base)
      world.module_eval(MODELS, __FILE__, __LINE__)
      world
    end
  end

  # Rails 7.1 names composite foreign keys `query_constraints`.
  FOREIGN_KEY = ActiveRecord.version >= Gem::Version.new("7.2") ? :foreign_key : :query_constraints
  MODELS = <<~RUBY.freeze
    class Guest < Base
      self.inheritance_column = :type
      belongs_to :friend, class_name: "Guest", optional: true
      has_many :admirers, class_name: "Guest", foreign_key: :friend_id
      has_many :tickets
      has_many :seats, through: :tickets
      has_many :halls, through: :seats
      has_many :ticket_halls, through: :tickets, source: :hall
      has_many :remarks
      has_many :remarked_halls, through: :remarks, source: :about, source_type: "\#{name.sub(/Guest\\z/, "Hall")}"
      has_many :received_remarks, as: :about, class_name: "Remark"
      has_one :first_remark, -> { order(:weight) }, class_name: "Remark"
      has_one :second_remark, -> { order(:weight).offset(1) }, class_name: "Remark"
      has_one :heaviest_remark_of_friend, -> { order(weight: :desc) }, through: :friend, source: :remarks
      has_one :last_remark_of_friend, -> { order("id DESC") }, through: :friend, source: :remarks # both tables have an id
      has_one :remark_about_guest, -> { joins("JOIN guests ON guests.id = remarks.about_id").order("remarks.id") }, class_name: "Remark"
      has_many :two_heaviest, -> { order(weight: :desc, id: :asc).limit(2) }, class_name: "Remark"
      has_many :next_two, -> { order(weight: :desc, id: :asc).limit(2).offset(1) }, class_name: "Remark"
      has_many :two_of_friend, -> { order(weight: :desc, id: :asc).limit(2) }, through: :friend, source: :remarks
      has_many :grave_remarks, ->(guest) { where("weight >= ?", guest.name.size).order(:id) }, class_name: "Remark"
      has_many :two_grave, ->(guest) { where("weight >= ?", guest.name.size).order(:id).limit(2) }, class_name: "Remark"
      has_and_belongs_to_many :pals, class_name: "Guest", join_table: :friendships, foreign_key: :left_id, association_foreign_key: :right_id
      has_many :kept_remarks, -> { where(weight: 3..).order(weight: :desc) }, class_name: "Remark"
    end
    class Regular < Guest; end
    class Star < Guest
      has_many :favours, class_name: "Remark", foreign_key: :guest_id
    end
    class WelcomeGuest < Base
      self.table_name = "guests"
      self.inheritance_column = nil
      default_scope { where(banned: false) }
    end
    class Hall < Base
      belongs_to :owner, polymorphic: true, optional: true
      has_many :seats
      has_many :tickets, primary_key: :code, foreign_key: :hall_code
      has_many :guests, through: :tickets
      has_many :remarks, as: :about
      has_one :last_remark, -> { order(id: :desc) }, as: :about, class_name: "Remark"
    end
    class Seat < Base
      belongs_to :hall
      has_many :tickets, #{FOREIGN_KEY}: %i[row_id seat_number]
      has_many :guests, through: :tickets
    end
    class Ticket < Base
      belongs_to :guest
      belongs_to :seat, #{FOREIGN_KEY}: %i[row_id seat_number]
      belongs_to :hall, primary_key: :code, foreign_key: :hall_code
    end
    class Remark < Base
      belongs_to :about, polymorphic: true
      belongs_to :guest
      belongs_to :welcome_guest, foreign_key: :guest_id, optional: true
    end
  RUBY
  private_constant :FOREIGN_KEY, :MODELS
end
