# frozen_string_literal: true

require_relative "../records"

# Queries of the serializers and templates of a shop: ids beside records, several loads on one line, and all of it from one line
# of the application where a gem serializes.
module Accuracy
  module Records
    module ShopRecordSamples
      extend Samples

      GROUP = "ActiveRecord"

      # rubocop:disable Layout/LineLength -- a label stands on the line that it is about
      kind "a shop"
      sample "ids of variants beside images, on lines of their own" do
        Product.all.to_a.each do |product|
          product.variant_ids #=> n_plus_one 4 Product#variants
          product.images.to_a #=> n_plus_one 4 Product#images
        end
      end
      sample "images beside the ids of variants, on one line" do
        Product.all.map { |product| [product.images.to_a, product.variant_ids] } #=> n_plus_one 4 Product#images, n_plus_one 4 Product#variants
      end
      sample "ids of several associations, on one line" do
        Product.all.map do |product|
          [product.variant_ids, product.option_type_ids, #=> n_plus_one 4 Product#variants, n_plus_one 4 Product#option_types
           product.taxon_ids, product.image_ids] #=> n_plus_one 4 Product#taxons, n_plus_one 4 Product#images
        end
      end
      sample "a product by a gem" do
        GemSerializer.call(Product.all, :sku, :variant_ids, :images, :option_types, :taxon_ids, :prices) #=> n_plus_one 4 Product#master elsewhere, n_plus_one 4 Product#variants, n_plus_one 4 Product#images, n_plus_one 4 Product#option_types, n_plus_one 4 Product#taxons, n_plus_one 4 Product#prices
      end
      sample "products and their master's prices" do
        Product.all.map do |product| #=> n_plus_one 4 Product#master elsewhere, n_plus_one 4 Variant#prices elsewhere
          [product.variant_ids, product.price_in("EUR").amount, #=> n_plus_one 4 Product#variants
           product.master.images.to_a] #=> n_plus_one 4 Variant#images
        end
      end
      sample "products with their variants" do
        Product.all.each do |product| #=> n_plus_one 16 OptionValue#option_type elsewhere, n_plus_one 8 Variant#option_values elsewhere
          product.variants.each do |variant| #=> n_plus_one 4 Product#variants
            [variant.image_ids, variant.prices.to_a, variant.options_text] #=> n_plus_one 8 Variant#images, n_plus_one 8 Variant#prices
          end
        end
      end
      sample "products with their variants, by a gem" do
        products = Product.all.to_a
        GemSerializer.call(products, :variant_ids, :master, :images) #=> n_plus_one 4 Product#variants, n_plus_one 4 Product#master, n_plus_one 4 Product#images
        variants = products.flat_map { |product| product.variants.to_a } #=> n_plus_one 4 Product#variants
        GemSerializer.call(variants, :product, :images, :image_ids, :prices) #=> n_plus_one 8 Variant#images, n_plus_one 8 Variant#prices
        GemSerializer.call(variants, :option_value_ids, :option_values, :stock_items) #=> n_plus_one 8 Variant#option_values, n_plus_one 8 Variant#option_values, n_plus_one 8 Variant#stock_items
      end
      sample "rows for ids that are plucked for each product, on one line" do
        Product.all.each do |product|
          Price.where(variant_id: Variant.where(product_id: product.id).pluck(:id)).to_a #=> n_plus_one 4 Product#variants_including_master, n_plus_one 4
        end
      end
      sample "orders of three lines" do
        Purchase.all.each do |purchase| #=> n_plus_one 9 LineItem#variant elsewhere, n_plus_one 9 Variant#product elsewhere
          purchase.line_item_ids #=> n_plus_one 3 Purchase#line_items
          purchase.line_items.each do |item| #=> n_plus_one 3 Purchase#line_items
            [item.product.name, item.variant.images.first] #=> n_plus_one 9 Variant#images
            [item.product.variant_ids, item.variant.option_value_ids] #=> n_plus_one 9 Product#variants, n_plus_one 9 Variant#option_values
          end
        end
      end
      sample "orders by a gem" do
        GemSerializer.call(Purchase.all, :line_item_ids, :line_items, :variant_ids, :variants, :products) #=> n_plus_one 3 Purchase#line_items, n_plus_one 3 Purchase#line_items, n_plus_one 3 Purchase#variants, n_plus_one 3 Purchase#variants, n_plus_one 3 Purchase#products
      end
      sample "lines by a gem" do
        GemSerializer.call(LineItem.all, :purchase, :variant, :product) #=> n_plus_one 9 LineItem#purchase, n_plus_one 9 LineItem#variant, n_plus_one 9 Variant#product elsewhere
      end
      sample "included, and asked for in part" do
        products = Product.includes(variants: %i[images prices], master: :prices).to_a
        GemSerializer.call(products, :sku, :variants, :variant_ids, :option_type_ids, :taxons, :images) #=> n_plus_one 4 Product#option_types, n_plus_one 4 Product#taxons, n_plus_one 4 Product#images
      end
      sample "included, and all of it" do
        products = Product.includes({ variants: %i[images prices] }, :option_types, :taxons).to_a
        products.each do |product|
          [product.variant_ids, product.option_type_ids, product.variants.map { |variant| [variant.image_ids, variant.prices.to_a] }]
        end
      end
      sample "stock of the variants" do
        Product.all.map { |product| [product.in_stock?, product.variant_ids, product.variants.size] } #=> n_plus_one 12 Variant#stock_items elsewhere, n_plus_one 4 Product#variants_including_master elsewhere, n_plus_one 4 Product#variants
      end
      sample "neighbours in a list" do
        Variant.all.map { |variant| [variant.lower_item, variant.image_ids, variant.images.last] } #=> n_plus_one 12 nil elsewhere, n_plus_one 12 Variant#images, n_plus_one 12 Variant#images
      end
      sample "images of single table inheritance, and where they belong" do
        Image.all.map { |image| [image.viewable.sku, image.viewable.product.variant_ids] } #=> n_plus_one 24 Asset#viewable, n_plus_one 24 Variant#product, n_plus_one 24 Product#variants
      end
      sample "positions of new images", writes: true do
        Variant.where(is_master: true).each { |variant| Image.create!(viewable: variant) } #=> n_plus_one 4 Variant#images elsewhere, write_loop 4
      end
      sample "a tree of taxons beside products" do
        Taxon.all.map do |taxon|
          [taxon.parent&.name, Product.find_by(name: taxon.name)] #=> n_plus_one 3, n_plus_one 2 Taxon#parent
          Classification.where(taxon_id: taxon.id).pluck(:product_id) #=> n_plus_one 3
        end
      end
      sample "look-ups by ids that were read" do
        Purchase.all.each do |purchase|
          ids = purchase.line_items.pluck(:variant_id) #=> n_plus_one 3 Purchase#line_items
          Variant.where(id: ids).to_a #=> n_plus_one 3
          Image.where(viewable_id: ids, viewable_type: "Accuracy::Records::Variant").to_a #=> n_plus_one 3
        end
      end
      sample "one product in full" do
        product = Product.first
        product.variants.each do |variant|
          [variant.images.to_a, variant.image_ids, variant.prices.to_a, variant.option_values.to_a] #=> n_plus_one 2 Variant#images, n_plus_one 2 Variant#prices, n_plus_one 2 Variant#option_values
        end
        product.variant_ids
      end
      sample "variants and what hangs on them, on one line" do
        Variant.all.map { |variant| [variant.product.variant_ids, variant.image_ids, variant.price_ids] } #=> n_plus_one 12 Variant#product, n_plus_one 12 Product#variants, n_plus_one 12 Variant#images, n_plus_one 12 Variant#prices
      end
      sample "variants and what hangs on them, on lines of their own" do
        Variant.all.each do |variant|
          variant.product.variant_ids #=> n_plus_one 12 Variant#product, n_plus_one 12 Product#variants
          variant.images.pluck(:id) #=> n_plus_one 12 Variant#images
          variant.prices.where(currency: "EUR").to_a #=> n_plus_one 12 Variant#prices
        end
      end
      sample "variants by a gem" do
        variants = Variant.all.to_a #=> n_plus_one 12 Product#variants_including_master elsewhere
        GemSerializer.call(variants, :product, :image_ids, :price_ids, :option_value_ids) #=> n_plus_one 12 Variant#product, n_plus_one 12 Variant#images, n_plus_one 12 Variant#prices, n_plus_one 12 Variant#option_values
        GemSerializer.call(variants, :images, :lower_item) #=> n_plus_one 12 Variant#images
      end
      sample "products of a taxon by a gem" do
        products = Product.joins(:classifications).where(classifications: { taxon_id: Taxon.last.id }).to_a
        GemSerializer.call(products, :variant_ids, :image_ids, :taxon_ids, :option_type_ids) #=> n_plus_one 4 Product#variants, n_plus_one 4 Product#images, n_plus_one 4 Product#taxons, n_plus_one 4 Product#option_types
        GemSerializer.call(products, :price_ids, :variants_including_master_ids) #=> n_plus_one 4 Product#prices, n_plus_one 4 Product#variants_including_master
      end
      sample "images of the master and of all variants" do
        Product.all.map do |product|
          [product.variants_including_master_ids, product.master.image_ids] #=> n_plus_one 4 Product#variants_including_master, n_plus_one 4 Product#master, n_plus_one 4 Variant#images
          [product.image_ids, product.variants.pluck(:sku)] #=> n_plus_one 4 Product#images, n_plus_one 4 Product#variants
        end
      end
      sample "lines with the ids of what they sell" do
        LineItem.all.map do |item|
          [item.purchase.line_item_ids, item.variant.image_ids] #=> n_plus_one 9 LineItem#purchase, n_plus_one 9 Purchase#line_items, n_plus_one 9 LineItem#variant, n_plus_one 9 Variant#images
          [item.variant.product.image_ids, item.variant.product.variant_ids] #=> n_plus_one 9 Variant#product, n_plus_one 9 Product#images, n_plus_one 9 Product#variants
        end
      end
      sample "an order in full by a gem" do
        purchase = Purchase.first #=> n_plus_one 6 Variant#product elsewhere
        GemSerializer.call([purchase], :line_item_ids, :line_items, :variants)
        GemSerializer.call(purchase.line_items, :variant, :product, :purchase) #=> n_plus_one 3 LineItem#variant
        GemSerializer.call(purchase.variants, :image_ids, :price_ids, :option_value_ids, :product) #=> n_plus_one 3 Variant#images, n_plus_one 3 Variant#prices, n_plus_one 3 Variant#option_values
        GemSerializer.call(purchase.products, :variant_ids, :image_ids, :taxon_ids) #=> n_plus_one 3 Product#variants, n_plus_one 3 Product#images, n_plus_one 3 Product#taxons
      end
      sample "find_each, and ids of each" do
        Product.find_each(batch_size: 3) do |product|
          [product.variant_ids, product.master.image_ids] #=> n_plus_one 4 Product#variants, n_plus_one 4 Product#master, n_plus_one 4 Variant#images
        end
      end
      sample "values looked up by their key" do
        Product.all.each do |product|
          ids = Variant.where(product_id: product.id).pluck(:id) #=> n_plus_one 4 Product#variants_including_master
          ids.each { |id| Image.where(viewable_type: "Accuracy::Records::Variant", viewable_id: id).to_a } #=> n_plus_one 12
        end
      end
      sample "prices by the currency, beside the ids" do
        Product.all.each do |product|
          product.variants.each do |variant| #=> n_plus_one 4 Product#variants
            [variant.prices.find_by(currency: "EUR"), variant.prices.find_by(currency: "USD"), variant.price_ids] #=> n_plus_one 16 Variant#prices, n_plus_one 8 Variant#prices
          end
        end
      end
      # rubocop:enable Layout/LineLength
    end
  end
end
