# frozen_string_literal: true

require_relative "../shop"

# Relations with `includes`, and serializers whose blocks read the loaded associations.
module SerializerCases
  asked = { params: { currency: "EUR" } }
  loads = { "includes" => -> { Product.includes(Product::LOADED) },
            "preload" => -> { Product.preload(Product::LOADED) },
            "eager_load" => -> { Product.eager_load(variants: :values).order("shop_variants.position, shop_values.id") },
            "includes with a condition" => -> {
              Product.includes(:variant_images,
                               variants: %i[values images]).where(shop_variants: { position: 1 }).references(:shop_variants)
            },
            "several includes" => -> { Product.includes(:variants, :variant_images).includes(variants: { values: :kind }) },
            "no includes" => -> { Product.all } }
  loads.each do |name, relation|
    [[], %i[variants], %i[variants.images images], %i[primary_variant variants.values.kind]].each do |include|
      add("shop: #{name}, include #{include.inspect}") do |kit|
        SHOP.call(kit)
        kit.of("ProductSerializer", relation.call.order(:id), include: include, **asked)
      end
    end
  end

  add("shop: the images of a relation that loads them are in its order") do |kit|
    SHOP.call(kit)
    kit.of("ProductSerializer", Product.includes(Product::LOADED).order(:id), fields: { product: [:images] })
  end

  # jsonapi-serializer ignores the option.
  stored = lambda do |kit|
    kit.define("ImageSerializer") { attributes :alt, :position, as_stored: true }
    kit.define("VariantSerializer") do
      attributes :sku, :weight, as_stored: true
      attribute :code, &:sku
      belongs_to :product
      has_many :images
    end
    kit.define("ProductSerializer") do
      attributes :name, as_stored: true
      has_many :variants
    end
  end
  [-> { Product.order(:id) }, -> { Product.order(:id).to_a }, -> { Product.order(:id).first }].each_with_index do |given, index|
    [[], [:variants], [:"variants.images"]].each do |include|
      add("shop: columns as they are, #{index}, include #{include.inspect}") do |kit|
        stored.call(kit)
        kit.of("ProductSerializer", given.call, include: include)
      end
    end
  end
end
