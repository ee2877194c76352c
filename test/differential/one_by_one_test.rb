# frozen_string_literal: true

require "test_helper"
require_relative "../rows/active_record_world"

# Documents equal what ActiveRecord loads for each record alone, even where its preloading of many records
# finds other records, or a key is compared with a column of another type.
module OneByOneContract
  include ActiveRecordWorld::OwnWorld

  module World
    def self.of(base)
      tables(base.connection)
      const_set(base.module_parent_name, Module.new).tap do |world|
        world.const_set(:Base, base)
        world.module_eval(MODELS, __FILE__, __LINE__)
      end
    end

    def self.tables(connection)
      connection.create_table(:guilds, id: :string) { |table| table.integer :number, :beside }
      connection.create_table(:masters) do |table|
        table.string :name, :guild_id
        table.integer :teacher_id, :rank
        table.boolean :retired, default: false, null: false
      end
      connection.create_table(:works) { |table| table.integer(:master_id, :rank) && table.string(:title) }
      connection.create_table(:seals) { |table| table.string :of_type, :of_id }
      connection.create_table(:yards, primary_key: %i[town number]) { |table| table.integer :town, :number, :code }
      connection.create_table(:carts) { |table| table.integer :yard_code }
      key_tables(connection)
    end

    # Keys whose type differs from that of the compared columns.
    def self.key_tables(connection)
      type, options = caseless_type(connection)
      connection.create_table(:stamps, id: "char(3)") do |table|
        table.string :number
        table.column :word, type, **options
        table.column :measure, "REAL"
      end
      connection.create_table(:prints) do |table|
        table.column :stamp_id, "char(3)"
        table.column :long_stamp_id, "char(5)"
        table.column :stamp_word, type, **options
        table.column :stamp_measure, connection.adapter_name == "SQLite" ? "UUID" : "REAL"
        table.integer :stamp_number
        table.integer :master_small, limit: 2
        table.decimal :master_decimal, precision: 10, scale: 2
        table.string :of_type
        table.integer :of_id
      end
    end

    # A type whose values compare without regard to case.
    def self.caseless_type(connection)
      return [:string, { collation: "NOCASE" }] if connection.adapter_name == "SQLite"

      connection.enable_extension("citext")
      [:citext, {}]
    end

    MODELS = <<~RUBY
      class Cart < Base; end
      class Yard < Base
        has_many :carts, primary_key: :code, foreign_key: :yard_code
      end
      class Seal < Base
        belongs_to :of, polymorphic: true
      end
      class Print < Base
        belongs_to :of, -> { unscope(where: :retired) }, polymorphic: true
        belongs_to :stamp, foreign_key: :long_stamp_id
        belongs_to :stamp_of_word, class_name: "Stamp", primary_key: :word, foreign_key: :stamp_word
        belongs_to :stamp_of_measure, class_name: "Stamp", primary_key: :measure, foreign_key: :stamp_measure
      end
      class Stamp < Base
        has_many :prints
        has_many :first_print, -> { order(:id).limit(1) }, class_name: "Print"
        has_many :long_prints, class_name: "Print", foreign_key: :long_stamp_id
        has_many :prints_by_word, class_name: "Print", primary_key: :word, foreign_key: :stamp_word
        has_many :prints_by_measure, class_name: "Print", primary_key: :measure, foreign_key: :stamp_measure
        has_many :prints_by_number, class_name: "Print", primary_key: :number, foreign_key: :stamp_number
      end
      class Work < Base
        has_many :prints, foreign_key: :of_id
      end
      class Master < Base
        default_scope { where(retired: false) }
        has_many :works
        has_many :best_works, -> { order(:rank, :id).limit(1) }, class_name: "Work"
        has_many :pupils, class_name: "Master", foreign_key: :teacher_id
        has_many :pupils_of_pupils, through: :pupils, source: :pupils
        has_many :ranked_pupils, -> { order(rank: :desc) }, class_name: "Master", foreign_key: :teacher_id
        has_many :works_of_ranked, -> { order(:title) }, through: :ranked_pupils, source: :works
        has_many :best_of_pupils, through: :pupils, source: :best_works
        has_many :named_works, -> { select(:id) }, class_name: "Work"
        has_one :best_work, -> { order(rank: :desc, id: :desc).limit(1) }, class_name: "Work"
        has_one :second_work, -> { order(rank: :desc, id: :desc).offset(1) }, class_name: "Work"
        has_many :distinct_works, -> { distinct }, class_name: "Work"
        has_many :printed_works, -> { eager_load(:prints).order("prints.id") }, class_name: "Work"
        has_many :small_prints, class_name: "Print", foreign_key: :master_small
        has_many :decimal_prints, class_name: "Print", foreign_key: :master_decimal
        has_many :seals, as: :of
        has_one :seal, as: :of
      end
      class Guild < Base
        has_many :masters, -> { order(:id) }
        has_many :first_two, -> { order(:id).limit(2) }, class_name: "Master"
        has_many :neighbours, -> { order(:id) }, class_name: "Guild", primary_key: :number, foreign_key: :beside
      end
    RUBY
  end

  LISTS = %i[pupils_of_pupils works_of_ranked best_of_pupils named_works].freeze

  def setup
    [world::Guild, world::Master, world::Work, world::Seal, world::Yard, world::Cart, world::Stamp, world::Print].each do |model|
      model.unscoped.delete_all
    end
    ids = %w[smiths masons].each_with_index.map { |id, number| world::Guild.create!(id: id, number: number, beside: 1).id }
    masters = Array.new(9) do |index|
      world::Master.create!(name: "M#{index}", guild_id: ids[index % 2], rank: index * 5 % 7, retired: index == 4)
    end
    masters.each_with_index do |master, index|
      master.update!(teacher_id: masters[index / 3].id) if index.positive?
      2.times { |n| world::Work.create!(master_id: master.id, rank: n, title: "W#{(index * 7) % 5}#{n}") }
    end
    3.times { |index| world::Seal.create!(of_type: world::Master.polymorphic_name, of_id: masters[index].id.to_s) }
  end

  # One record has loaded an association; the others load theirs.
  def test_many_records_are_written_like_each_one_alone
    LISTS.each do |name|
      expected = world::Master.order(:id).map { |master| master.association(name).reader.map { |record| record.id.to_s } }
      records = world::Master.order(:id).to_a
      records.first.association(name).load_target
      assert_equal order(name, expected), order(name, linked(plain(world::Master, name).render(records), name)), name
    end
  end

  def test_a_limit_of_a_to_one_association_applies_per_record
    %i[best_work second_work].each do |name|
      expected = world::Master.order(:id).map { |master| master.association(name).reader.id.to_s }
      records = world::Master.order(:id).to_a
      records.first.association(name).load_target
      [records, world::Master.order(:id)].each { |scope| assert_equal expected, linked_to_one(masters_with_one(name).render(scope), name) }
    end
  end

  def test_an_association_with_distinct_is_preloaded
    assert_one_statement_for_the_rest(world::Master.order(:id).to_a, :distinct_works, plain(world::Master, :distinct_works))
  end

  def test_a_scope_of_a_polymorphic_belongs_to_is_evaluated_on_the_named_classes
    world::Master.order(:id).first(4).each { |master| world::Print.create!(of: master) }
    prints = resource_of_prints
    assert_one_statement_for_the_rest(world::Print.order(:id).to_a, :of, prints)
    linked = linked_to_one(prints.render(world::Print.order(:id)), :of)
    assert_equal(world::Print.order(:id).map { |print| print.of_id.to_s }, linked)
  end

  def test_a_scope_with_eager_loading_has_each_link_once
    world::Work.order(:id).each { |work| 2.times { world::Print.create!(of_id: work.id) } }
    assert_found_by_each(world::Master, :printed_works)
    assert_includes plain(world::Master, :printed_works).document.explain, "its scope loads other records in one statement"
  end

  def test_a_key_of_characters_of_a_length
    %w[abc abd].each { |id| 2.times { world::Print.create!(stamp_id: world::Stamp.find_or_create_by!(id: id).id) } }
    %i[prints first_print].each do |name|
      assert_found_by_each(world::Stamp, name)
      padded = plain(world::Stamp, name).document.explain.include?("different texts can be equal")
      assert_equal world::Base.connection.adapter_name == "PostgreSQL", padded
    end
  end

  # The database and a record's own query compare these as equal; their texts differ.
  def test_keys_that_are_equal_with_different_texts
    long = world::Base.connection.adapter_name == "SQLite" ? "abc" : "abc  "
    %w[abc abd].each_with_index { |id, number| world::Stamp.create!(id: id, word: id, measure: number) }
    [[long, "ABC", 0], ["abd", "abD", 1], ["abc", "Abc", 0]].each do |id, word, measure|
      world::Print.create!(long_stamp_id: id, stamp_word: word, stamp_measure: measure)
    end
    %i[long_prints prints_by_word prints_by_measure].each { |name| assert_found_by_each(world::Stamp, name) }
    %i[stamp stamp_of_word stamp_of_measure].each { |name| assert_one_found_by_each(world::Print, name) }
  end

  # A text whose spelling differs from that of the number.
  def test_a_text_key_and_a_column_of_numbers
    %w[08 7].each { |number| world::Stamp.create!(id: "a#{number}", number: number) }
    [8, 7].each { |number| world::Print.create!(stamp_number: number) }
    assert_found_by_each(world::Stamp, :prints_by_number)
  end

  def test_a_key_and_a_column_of_small_numbers_or_decimals
    world::Master.order(:id).first(3).each do |master|
      2.times { world::Print.create!(master_small: master.id, master_decimal: master.id) }
    end
    %i[small_prints decimal_prints].each { |name| assert_found_by_each(world::Master, name) }
  end

  # SQLite cannot group text, which may contain a comma.
  def test_a_text_key_with_a_limit_or_with_another_key
    %i[masters first_two neighbours].each do |name|
      expected = world::Guild.order(:id).map { |guild| guild.association(name).reader.map { |record| record.id.to_s } }
      guilds = plain(world::Guild, name)
      [world::Guild.order(:id), world::Guild.order(:id).to_a].each { |scope| assert_equal expected, linked(guilds.render(scope), name) }
    end
  end

  def test_a_text_column_that_holds_keys_of_integers
    expected = world::Master.order(:id).map { |master| master.seals.map { |seal| seal.id.to_s } }
    [plain(world::Master, :seals), opaque(world::Master, :seals)].each do |masters|
      [world::Master.order(:id), world::Master.order(:id).to_a].each do |scope|
        assert_equal expected, linked(masters.render(scope, include: :seals), :seals)
      end
    end
    assert_includes plain(world::Master, :seals).document.explain, "are of different types"
  end

  def test_a_text_column_that_holds_the_key_of_one_record
    seals = Class.new(Castellan::Resource)
    seals.model(world::Seal)
    masters = resource(world::Master) { has_one :seal, resource: seals }
    written = JSON.parse(masters.render(world::Master.order(:id)))["data"].map { |one| one["relationships"]["seal"]["data"] }
    assert_equal(world::Master.order(:id).map { |master| master.seal&.id&.to_s }, written.map { |link| link && link["id"] })
  end

  def test_a_key_of_several_columns_with_another_key
    world::Yard.create!(town: 1, number: 2, code: 7)
    ids = Array.new(2) { world::Cart.create!(yard_code: 7).id.to_s }
    assert_equal [ids], order(:carts, linked(plain(world::Yard, :carts).render, :carts))
  end

  private

  def assert_found_by_each(model, name)
    expected = model.order(:id).map { |owner| owner.association(name).reader.map { |record| record.id.to_s } }
    refute_empty expected.flatten
    given = model.order(:id).to_a
    some = model.order(:id).to_a
    some.first.association(name).load_target
    [model.order(:id), given, some].each do |scope|
      assert_equal expected.map(&:sort), linked(plain(model, name).render(scope), name).map(&:sort), name
    end
  end

  def assert_one_found_by_each(model, name)
    expected = model.order(:id).map { |owner| owner.association(name).reader&.id&.to_s }
    [model.order(:id), model.order(:id).to_a].each do |scope|
      assert_equal expected, linked_to_one(to_one(model, name).render(scope, include: name), name), name
    end
  end

  # Asserts one query for the associations that the first record has loaded and the others have not.
  def assert_one_statement_for_the_rest(records, name, resource)
    records.first.association(name).load_target
    count = 0
    counts = ->(*, payload) { count += 1 unless payload[:name] == "SCHEMA" }
    ActiveSupport::Notifications.subscribed(counts, "sql.active_record") { resource.render(records) }
    assert_equal 1, count
  end

  def masters_with_one(name)
    works = Class.new(Castellan::Resource)
    works.model(world::Work)
    resource(world::Master) { has_one name, resource: works }
  end

  def resource_of_prints
    masters = resource(world::Master) { type "masters" }
    resource(world::Print) { belongs_to :of, resource: [masters] }
  end

  def linked_to_one(text, name)
    JSON.parse(text)["data"].map { |one| one["relationships"][name.to_s]["data"]&.fetch("id") }
  end

  def to_one(model, name)
    related = Class.new(Castellan::Resource)
    related.model(model.reflect_on_association(name).klass)
    resource(model) { belongs_to name, resource: related }
  end

  def opaque(model, name)
    plain(model, name).tap { |resource| resource.attribute(:opaque) { |record| record.class.name.size } }
  end

  def plain(model, name)
    related = Class.new(Castellan::Resource)
    related.model(model.reflect_on_association(name).klass)
    resource(model) { has_many name, resource: related }
  end

  def resource(model, &block)
    Class.new(Castellan::Resource) do
      model model
      class_exec(&block)
    end
  end

  def linked(text, name)
    JSON.parse(text)["data"].map { |one| one["relationships"][name.to_s]["data"].map { |link| link["id"] } }
  end

  # Ignores the order of an association without an order.
  def order(name, lists)
    name == :works_of_ranked ? lists : lists.map(&:sort)
  end
end

class OneByOneOnSqliteTest < Minitest::Test
  include OneByOneContract
  include ActiveRecordWorld::OnSqlite
end

class OneByOneOnPostgresTest < Minitest::Test
  include OneByOneContract
  include ActiveRecordWorld::OnPostgres

  # Equal keys in columns of different types or collations, as belongs_to and has_many compare them.
  module Keys
    PAIRS = {
      collated: ['text COLLATE "ucs_basic"', 'text COLLATE "ucs_basic"'], caseless: %w[citext citext], padded: %w[char(6) varchar(6)],
      loose: ['text COLLATE "castellan_loose"', 'text COLLATE "castellan_loose"'], between: ['text COLLATE "ucs_basic"', 'text COLLATE "C"']
    }.freeze

    def self.of(base)
      connection = base.connection
      connection.enable_extension("citext")
      connection.execute(%(CREATE COLLATION IF NOT EXISTS castellan_loose (provider = icu, locale = 'und', deterministic = false)))
      connection.execute("CREATE TABLE locks (id bigserial PRIMARY KEY, #{PAIRS.map { |name, (own, _)| "#{name} #{own}" }.join(", ")})")
      connection.execute("CREATE TABLE keys (id bigserial PRIMARY KEY, #{PAIRS.map { |name, (_, of)| "#{name} #{of}" }.join(", ")})")
      base.module_parent.const_set(:Keys, Module.new).tap { |world| models(world, base) }
    end

    def self.models(world, base)
      lock = world.const_set(:Lock, Class.new(base) { self.table_name = "locks" })
      key = world.const_set(:Key, Class.new(base) { self.table_name = "keys" })
      PAIRS.each_key do |name|
        lock.has_many :"by_#{name}", class_name: key.name, primary_key: name, foreign_key: name
        key.belongs_to :"of_#{name}", class_name: lock.name, primary_key: name, foreign_key: name, optional: true
      end
    end
  end

  def test_keys_with_collations_are_compared_by_the_database_for_each_record
    fill
    Keys::PAIRS.each_key do |name|
      assert_one_found_by_each(keys::Key, :"of_#{name}")
      assert_found_by_each(keys::Lock, :"by_#{name}")
      assert_includes plain(keys::Lock, :"by_#{name}").document.explain, "different texts can be equal"
    end
  end

  private

  def keys = @@keys ||= Keys.of(models::Base) # rubocop:disable Style/ClassVars

  def fill
    %w[abcdef ghijkl mn].each_with_index do |text, index|
      keys::Lock.create!(Keys::PAIRS.transform_values { text })
      [text, index.zero? ? text.upcase : "#{text}  "[0, 6]].each { |one| keys::Key.create!(Keys::PAIRS.transform_values { one }) }
    end
  end
end
