# frozen_string_literal: true

require "test_helper"
require "active_record"
require "tmpdir"
require "castellan/serializer"

# A shop in the manner of Spree, as models of ActiveRecord in one database: every kind of association, and rows with
# dangling keys.
#
#   world = TogetherWorld.sqlite
#   world::Store.order(:id)
#   TogetherWorld.queries { … }   # => the statements of the block
module TogetherWorld
  class << self
    def sqlite
      @sqlite ||= build(:TogetherSqlite, { adapter: "sqlite3", database: File.join(directory, "together.sqlite3"), pool: 20 })
    end

    def postgres
      @postgres ||= build(:TogetherPostgres, Castellan::TestServers.postgres_url)
    end

    def queries
      found = []
      subscriber = ActiveSupport::Notifications.subscribe("sql.active_record") do |*, event|
        found << event[:sql] unless event[:name] == "SCHEMA"
      end
      yield
      found
    ensure
      ActiveSupport::Notifications.unsubscribe(subscriber)
    end

    private

    def directory
      Dir.mktmpdir("castellan-together").tap { |path| Minitest.after_run { FileUtils.remove_entry(path) } }
    end

    def build(name, database)
      world = Object.const_set(name, Module.new)
      base = world.const_set(:Base, Class.new(ActiveRecord::Base) { self.abstract_class = true })
      base.establish_connection(database)
      tables(base.connection)
      world.module_eval(MODELS, __FILE__, __LINE__)
      fill(world)
      world
    end

    def tables(connection)
      TABLES.each do |table, columns|
        connection.create_table(table, force: true) { |new| columns.each { |column, type| new.public_send(type, column) } }
      end
      connection.create_table(:together_products_tags, id: false, force: true) do |table|
        table.bigint :product_id
        table.bigint :tag_id
      end
    end

    def fill(world)
      random = Random.new(7)
      rows = lambda do |model, count, &row|
        model.unscoped.insert_all!((1..count).map { |id| { id: id, name: "#{model.name.split("::").last} #{id}", **row.call(id) } })
      end
      some = ->(count, missing: 0.1) { random.rand < missing ? [nil, 9_999].sample(random: random) : random.rand(1..count) }
      rows.call(world::Store, 6) { {} }
      rows.call(world::Product, 24) do |id|
        { store_id: some[6], parent_id: some[24], position: random.rand(10), reviews_count: id % 3 }
      end
      rows.call(world::Variant, 50) { { product_id: some[24], master: random.rand < 0.3 } }
      rows.call(world::Price, 70) { { variant_id: some[50], cents: random.rand(1_000) } }
      rows.call(world::Image, 40) do
        { viewable_id: some[20], viewable_type: "#{world}::#{%w[Product Variant].sample(random: random)}", position: random.rand(20) }
      end
      rows.call(world::Tag, 8) { |id| { hidden: (id % 4).zero? } }
      rows.call(world::Review, 30) do |id|
        { product_id: some[24], store_id: some[6], type: id.even? ? "#{world}::ExpertReview" : "#{world}::Review" }
      end
      links = (1..40).map { { product_id: random.rand(1..24), tag_id: random.rand(1..8) } }.uniq
      pairs = links.map { |link| "(#{link.values.join(", ")})" }.join(", ")
      world::Base.connection.execute("INSERT INTO together_products_tags (product_id, tag_id) VALUES #{pairs}")
    end
  end

  TABLES = {
    together_stores: { name: :string },
    together_products: { name: :string, store_id: :bigint, parent_id: :bigint, position: :integer, reviews_count: :integer },
    together_variants: { name: :string, product_id: :bigint, master: :boolean },
    together_prices: { name: :string, variant_id: :bigint, cents: :integer },
    together_images: { name: :string, viewable_id: :bigint, viewable_type: :string, position: :integer },
    together_tags: { name: :string, hidden: :boolean },
    together_reviews: { name: :string, product_id: :bigint, store_id: :bigint, type: :string }
  }.freeze

  MODELS = <<~RUBY
    class Store < Base
      self.table_name = "together_stores"
      has_many :products, -> { order(:position, :id) }
      has_many :variants, through: :products
      has_many :prices, through: :variants
      has_one :top_product, -> { order(position: :desc, id: :desc) }, class_name: "\#{module_parent}::Product"
      has_many :first_products, -> { order(:id).limit(2) }, class_name: "\#{module_parent}::Product"
      has_many :numbered_products, ->(store) { where(position: store.id) }, class_name: "\#{module_parent}::Product"
      has_many :reviews, -> { order(:id) }
      has_many :expert_reviews, -> { order(id: :desc) }, class_name: "\#{module_parent}::ExpertReview"
    end

    class Product < Base
      self.table_name = "together_products"
      belongs_to :store, optional: true
      belongs_to :parent, class_name: "\#{module_parent}::Product", optional: true
      has_many :children, class_name: "\#{module_parent}::Product", foreign_key: :parent_id
      has_many :variants, inverse_of: :product
      has_one :master, -> { where(master: true).order(:id) }, class_name: "\#{module_parent}::Variant"
      has_many :prices, through: :variants
      has_many :dear_prices, -> { where("cents > 500").order(:id) }, through: :variants, source: :prices
      has_many :rising_prices, -> { order(:cents, :id) }, through: :variants, source: :prices
      has_many :variants_prices, -> { order("together_variants.name, together_prices.id") }, through: :variants, source: :prices
      has_many :images, -> { order(:position, :id) }, as: :viewable
      has_many :variant_images, -> { order(:position, :id) }, through: :variants, source: :images
      has_many :placed_images, class_name: "\#{module_parent}::Image", primary_key: :position, foreign_key: :position
      has_many :placed_products, -> { where(position: 3..).order(id: :desc) }, through: :placed_images, source: :viewable,
        source_type: "\#{module_parent}::Product"
      has_many :reviews, -> { order(:id) }
      has_and_belongs_to_many :tags, -> { order(:id) }, join_table: "together_products_tags"
      has_and_belongs_to_many :late_tags, -> { where("name > 'Tag 2'").order(id: :desc) }, join_table: "together_products_tags",
        class_name: "\#{module_parent}::Tag", association_foreign_key: :tag_id
    end

    class Variant < Base
      self.table_name = "together_variants"
      belongs_to :product, optional: true
      has_many :prices
      has_many :dear_prices, -> { where("cents > 500").order(:id) }, class_name: "\#{module_parent}::Price"
      has_many :images, -> { order(:position, :id) }, as: :viewable
    end

    class Price < Base
      self.table_name = "together_prices"
      belongs_to :variant, optional: true
      has_one :product, through: :variant
    end

    class Image < Base
      self.table_name = "together_images"
      belongs_to :viewable, polymorphic: true, optional: true
    end

    class Tag < Base
      self.table_name = "together_tags"
      default_scope { where(hidden: false) }
      has_and_belongs_to_many :products, -> { order(:id) }, join_table: "together_products_tags"
    end

    class Review < Base
      self.table_name = "together_reviews"
      belongs_to :product, optional: true, counter_cache: true
      belongs_to :store, optional: true
    end

    class ExpertReview < Review
      has_many :images, -> { order(:id) }, through: :product
    end
  RUBY
end
