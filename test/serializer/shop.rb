# frozen_string_literal: true

require "active_record"
require "tempfile"
require "active_support/core_ext/object/with_options"

# A shop in the style of Spree: an after_initialize in the base class fills preferences, a master variant,
# images of all variants through an ordered association, and serializers of blocks.
module SerializerCases
  class ShopRecord < ActiveRecord::Base
    # A file, because a database in memory would end with its connection, which other tests may close.
    FILE = Tempfile.new(["shop", ".sqlite3"])
    self.abstract_class = true
    establish_connection(ENV.fetch("SERIALIZER_DATABASE") { { adapter: "sqlite3", database: FILE.path } })
    after_initialize :fill_preferences

    def preferences = @preferences ||= {}

    private

    def fill_preferences = preferences[:currency] ||= "EUR"
  end

  ShopRecord.connection.instance_exec do
    %i[shop_products shop_variants shop_images shop_prices shop_values shop_kinds].each { |name| drop_table(name, if_exists: true) }
    create_table(:shop_products) { |t| t.string :name }
    create_table(:shop_variants) do |t|
      t.string :sku
      t.decimal :weight, precision: 8, scale: 2
      t.integer :product_id
      t.boolean :is_master
      t.integer :position
    end
    create_table(:shop_images) do |t|
      t.string :alt
      t.string :viewable_type
      t.integer :viewable_id
      t.integer :position
    end
    create_table(:shop_prices) do |t|
      t.integer :variant_id
      t.string :currency
      t.integer :cents
    end
    create_table(:shop_kinds) { |t| t.string :name }
    create_table(:shop_values) do |t|
      t.string :name
      t.integer :variant_id
      t.integer :kind_id
    end
  end

  class Kind < ShopRecord
    self.table_name = "shop_kinds"
  end

  class Value < ShopRecord
    self.table_name = "shop_values"
    belongs_to :kind, class_name: "SerializerCases::Kind"
  end

  class Price < ShopRecord
    self.table_name = "shop_prices"
  end

  class Image < ShopRecord
    self.table_name = "shop_images"
    belongs_to :viewable, polymorphic: true
  end

  class Variant < ShopRecord
    self.table_name = "shop_variants"
    belongs_to :product, class_name: "SerializerCases::Product"
    has_many :images, -> { order(:position) }, as: :viewable, class_name: "SerializerCases::Image"
    has_many :prices, class_name: "SerializerCases::Price"
    has_many :values, class_name: "SerializerCases::Value"

    def label = values.map { |value| "#{value.kind.name}: #{value.name}" }.join(", ")
    def price_in(currency) = prices.find { |price| price.currency == currency }
  end

  class Product < ShopRecord
    self.table_name = "shop_products"
    with_options(class_name: "SerializerCases::Variant", inverse_of: :product) do
      has_one :master, -> { where(is_master: true) }
      has_many :variants, -> { where(is_master: false).order(:position) }
      has_many :variants_including_master, -> { order(:position) }
    end
    has_many :variant_images, -> { order(:position) }, through: :variants_including_master, source: :images

    LOADED = { variant_images: [], master: { images: [] }, variants: { values: :kind, images: [] } }.freeze
  end

  kinds = %w[Size Colour].map { |name| Kind.create!(name: name) }
  4.times do |number|
    product = Product.create!(name: "Shirt <#{number}>")
    variants = Array.new(3) do |position|
      variant = Variant.create!(product: product, sku: "S-#{number}-#{position}", weight: position + 0.5, is_master: position.zero?,
                                position: position)
      kinds.each { |kind| Value.create!(variant_id: variant.id, kind: kind, name: "#{kind.name[0]}#{position}") }
      Price.create!(variant_id: variant.id, currency: "EUR", cents: (100 * number) + position)
      variant
    end
    # The images have another order than the variants.
    variants.reverse.each_with_index do |variant, position|
      Image.create!(viewable: variant, alt: "#{number}/#{position}", position: position)
    end
  end

  # Defines the serializers, starting with the base class, as Spree does.
  SHOP = lambda do |kit|
    kit.define("BaseSerializer")
    kit.define("ImageSerializer", "BaseSerializer") do
      set_type :image
      attributes :alt, :position
    end
    kit.define("KindSerializer", "BaseSerializer") { attributes :name }
    kit.define("ValueSerializer", "BaseSerializer") do
      set_type :value
      attributes :name
      attribute(:kind_name) { |value| value.kind.name }
      belongs_to :kind
    end
    kit.define("VariantSerializer", "BaseSerializer") do
      set_type :variant
      attributes :sku, :weight
      attribute(:label) { |variant| variant.label }
      attribute(:price) { |variant, params| variant.price_in(params[:currency])&.cents }
      has_many :images
      has_many :values
      belongs_to :product
    end
    kit.define("ProductSerializer", "BaseSerializer") do
      set_type :product
      attributes :name
      attribute(:images_count) { |product| product.variant_images.size }
      has_many :variants
      has_many :images, object_method_name: :variant_images, id_method_name: :variant_image_ids, record_type: :image, serializer: :image
      has_one :primary_variant, object_method_name: :master, id_method_name: :id, record_type: :variant, serializer: :variant do |product|
        product.master
      end
    end
  end
end
