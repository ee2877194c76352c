# frozen_string_literal: true

# A small shop in the style of Spree, in the database of {Accuracy::Records}: 4 products with a master and 2
# variants, each variant with 2 images, 2 prices and 2 option values; 3 purchases with 3 lines each.
module Accuracy
  module Records
    # Numbers the records of one owner, like acts_as_list.
    module Listed
      def self.included(model)
        model.class_eval do
          default_scope { order(:position) }
          before_create { self.position ||= siblings.maximum(:position).to_i + 1 }
        end
      end

      def lower_item = siblings.where("position > ?", position).first
    end

    class Product < Base
      default_scope { where(deleted_at: nil) }
      has_one :master, -> { where(is_master: true) }, class_name: "Accuracy::Records::Variant", inverse_of: :product
      has_many :variants, -> { where(is_master: false) }, inverse_of: :product
      has_many :variants_including_master, class_name: "Accuracy::Records::Variant", inverse_of: :product
      has_many :images, -> { reorder(:id) }, through: :variants_including_master
      has_many :prices, through: :variants_including_master
      has_many :product_option_types
      has_many :option_types, through: :product_option_types
      has_many :classifications
      has_many :taxons, through: :classifications
      delegate :sku, to: :master

      def price_in(currency) = master.prices.find_by(currency: currency)
      def in_stock? = variants_including_master.any? { |variant| variant.stock_items.sum(:count_on_hand).positive? }
    end

    class Variant < Base
      include Listed

      belongs_to :product, inverse_of: :variants
      has_many :images, as: :viewable
      has_many :prices
      has_many :stock_items
      has_many :option_value_variants
      has_many :option_values, through: :option_value_variants

      def siblings = Variant.where(product_id: product_id)
      def options_text = option_values.map { |value| "#{value.option_type.name}: #{value.name}" }.join(", ")
    end

    class Asset < Base
      include Listed

      belongs_to :viewable, polymorphic: true

      def siblings = Asset.where(viewable_id: viewable_id, viewable_type: viewable_type)
    end

    class Image < Asset
    end

    class Price < Base
      default_scope { where(deleted_at: nil) }
      belongs_to :variant
    end

    class StockItem < Base
      belongs_to :variant
    end

    class OptionType < Base
      has_many :option_values
    end

    class ProductOptionType < Base
      include Listed

      belongs_to :product
      belongs_to :option_type

      def siblings = ProductOptionType.where(product_id: product_id)
    end

    class OptionValue < Base
      include Listed

      belongs_to :option_type

      def siblings = OptionValue.where(option_type_id: option_type_id)
    end

    class OptionValueVariant < Base
      belongs_to :variant
      belongs_to :option_value
    end

    class Taxon < Base
      belongs_to :parent, class_name: "Accuracy::Records::Taxon", optional: true
    end

    class Classification < Base
      belongs_to :product
      belongs_to :taxon
    end

    class Purchase < Base
      has_many :line_items
      has_many :variants, through: :line_items
      has_many :products, through: :variants
    end

    class LineItem < Base
      belongs_to :purchase
      belongs_to :variant
      delegate :product, to: :variant
    end

    # Replaces the serializer of a gem: reads given attributes of each record, outside of the application's
    # code.
    module GemSerializer
      SOURCE = <<~RUBY
        def self.call(records, *names) = records.map { |record| names.map { |name| read(record.public_send(name)) } }
        def self.read(value) = value.respond_to?(:to_ary) ? value.to_a : value
      RUBY
      module_eval(SOURCE, "#{Gem.path.first}/gems/serializer-1.0/lib/serializer.rb", 1)
    end

    SHOP_SCHEMA = {
      products: { name: :string, deleted_at: :datetime },
      variants: { product_id: :integer, is_master: :boolean, sku: :string, position: :integer },
      assets: { viewable_id: :integer, viewable_type: :string, type: :string, position: :integer },
      prices: { variant_id: :integer, currency: :string, amount: :integer, deleted_at: :datetime },
      stock_items: { variant_id: :integer, count_on_hand: :integer }, option_types: { name: :string },
      product_option_types: { product_id: :integer, option_type_id: :integer, position: :integer },
      option_values: { option_type_id: :integer, name: :string, position: :integer },
      option_value_variants: { variant_id: :integer, option_value_id: :integer },
      taxons: { parent_id: :integer, name: :string }, classifications: { product_id: :integer, taxon_id: :integer },
      purchases: { number: :string }, line_items: { purchase_id: :integer, variant_id: :integer, quantity: :integer }
    }.freeze

    module_function

    def create_shop
      SHOP_SCHEMA.each { |table, columns| Base.connection.create_table(table) { |t| columns.each { |name, type| t.column(name, type) } } }
      types = %w[size colour].map { |name| OptionType.create!(name: name) }
      values = types.map { |type| %w[one other].map { |name| OptionValue.create!(option_type: type, name: name) } }
      root = Taxon.create!(name: "all")
      taxons = Array.new(2) { |number| Taxon.create!(name: "taxon #{number}", parent: root) }
      4.times { |number| create_product(number, types, values, taxons) }
      create_purchases
    end

    def create_product(number, types, values, taxons)
      product = Product.create!(name: "product #{number}")
      types.each { |type| ProductOptionType.create!(product: product, option_type: type) }
      taxons.each { |taxon| Classification.create!(product: product, taxon: taxon) }
      3.times do |index|
        variant = Variant.create!(product: product, is_master: index.zero?, sku: "#{number}-#{index}")
        2.times { Image.create!(viewable: variant) }
        %w[EUR USD].each { |currency| Price.create!(variant: variant, currency: currency, amount: 10) }
        StockItem.create!(variant: variant, count_on_hand: index == 2 ? 1 : 0)
        values.each { |pair| OptionValueVariant.create!(variant: variant, option_value: pair[index % 2]) }
      end
    end

    def create_purchases
      variants = Variant.where(is_master: false).to_a
      3.times do |number|
        purchase = Purchase.create!(number: "R#{number}")
        3.times { |index| LineItem.create!(purchase: purchase, variant: variants[number + index], quantity: 1) }
      end
    end
  end
end
