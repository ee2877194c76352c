# frozen_string_literal: true

module Benchmarks
  # A shop with serializers made of blocks, as in large applications: products, variants, images.
  #
  #   Shop.new(100).each { |title, ways, goals, queries| … }   # creates its tables in the connected database
  #
  # There are 100 products. The serializers are written once and evaluated for each library.
  class Shop
    DEEP = [:brand, :images, { variants: %i[prices images] }].freeze
    private_constant :DEEP

    # The body of a serializer for variants.
    VARIANT = proc do
      set_type :variant
      attributes :sku
      attribute(:price) { |variant| variant.prices.find { |price| price.currency == "EUR" }&.cents }
      attribute(:image) { |variant| variant.images.map(&:url).min }
    end

    # The body of a serializer for products: three associations, two levels deep.
    PRODUCT = proc do |variant|
      set_type :product
      attributes :name, :slug
      attribute(:brand) { |product| product.brand&.name }
      attribute(:lowest) { |product| product.variants.flat_map { |one| one.prices.map(&:cents) }.min }
      attribute(:pictures) { |product| product.variants.flat_map { |one| one.images.map(&:url) }.uniq.sort }
      attribute(:cover) { |product| product.images.map(&:url).min }
      has_many :variants, serializer: variant
    end

    def initialize(count)
      @count = count
      create
      @gem, = serializer(::JSONAPI::Serializer)
      @castellan, @castellan_variant = serializer(Castellan::Serializer)
      fill
    end

    # @yieldparam title [String]
    # @yieldparam ways [Array<Way>]
    # @yieldparam goals [Hash]
    # @yieldparam queries [Hash{String => Integer}] by way
    def each
      { "" => {}, ", variants included" => { include: [:variants] } }.each do |suffix, options|
        faster = { "jsonapi-serializer" => 3.0 }
        yield_work("#{@count} products by blocks, a relation#{suffix}", -> { scope }, options, faster) { |*work| yield(*work) }
        yield_work("#{@count} products by blocks, records#{suffix}", -> { scope.to_a }, options, faster) { |*work| yield(*work) }
        yield_work("#{@count} products by blocks, all preloaded#{suffix}", -> { scope.preload(*DEEP).to_a }, options,
                   { "jsonapi-serializer" => 1.5 }, loaded: true) { |*work| yield(*work) }
      end
    end

    private

    def scope
      ShopProduct.order(:id)
    end

    def yield_work(title, given, options, goals, loaded: false)
      prepare = given if loaded
      ways = { "jsonapi-serializer" => ->(records) { @gem.new(records, options).serializable_hash.to_json },
               "Castellan::Serializer" => ->(records) { @castellan.new(records, options).to_json } }.map do |name, write|
        Way.new(name, :json_api, prepare: prepare) { |records = given.call| write.call(records) }
      end
      bodies = ways.map(&:call)
      ways << Way.new("the blocks alone (the floor)", nil, prepare: prepare) { |records| blocks(records, options) } if loaded
      abort "#{title}: the bytes differ" unless bodies.uniq.one?

      yield title, ways, goals, ways.to_h { |way| [way.name, queries(way)] }
    end

    # The minimum work of any serializer: the values of the application's own blocks.
    def blocks(records, options)
      values(records, @castellan) { |record| record.variant_ids }
      values(records.flat_map(&:variants), @castellan_variant) if options[:include]
    end

    def values(records, serializer)
      members = serializer.attributes_to_serialize.values
      records.each { |record| [record.id, (yield record if block_given?), *members.map { |member| member.value(record, {}) }] }
    end

    def queries(way)
      records = way.prepare
      count = 0
      counted = ->(*, event) { count += 1 unless event[:name] == "SCHEMA" }
      ActiveSupport::Notifications.subscribed(counted, "sql.active_record") { way.prepared? ? way.call(records) : way.call }
      count
    end

    def serializer(library)
      variant = Class.new { include library }
      variant.class_eval(&VARIANT)
      product = Class.new { include library }
      product.class_exec(variant, &PRODUCT)
      [product, variant]
    end

    def create
      connection = ActiveRecord::Base.connection
      { shop_brands: { name: :string }, shop_products: { name: :string, slug: :string, brand_id: :bigint },
        shop_variants: { sku: :string, product_id: :bigint }, shop_prices: { cents: :integer, currency: :string, variant_id: :bigint },
        shop_images: { url: :string, viewable_id: :bigint, viewable_type: :string } }.each do |table, columns|
        connection.create_table(table, force: true) do |new|
          columns.each { |name, type| new.public_send(type, name, index: name.end_with?("_id")) }
        end
      end
      require_relative "shop_models"
    end

    def fill
      ShopBrand.insert_all!(Array.new(10) { |index| { name: "Brand #{index}" } })
      ShopProduct.insert_all!(Array.new(@count) { |index|
        { name: "Product #{index}", slug: "product-#{index}", brand_id: (index % 10) + 1 }
      })
      variants = @count * 3
      ShopVariant.insert_all!(Array.new(variants) { |index| { sku: "SKU-#{index}", product_id: (index / 3) + 1 } })
      ShopPrice.insert_all!(Array.new(variants * 2) { |index|
        { cents: (index * 37) % 9_900, currency: %w[EUR USD][index % 2], variant_id: (index / 2) + 1 }
      })
      ShopImage.insert_all!([*images("ShopProduct", @count), *images("ShopVariant", variants)])
    end

    def images(type, owners)
      Array.new(owners * 2) { |index| { url: "/images/#{type}/#{index}.jpg", viewable_type: type, viewable_id: (index / 2) + 1 } }
    end
  end
end
