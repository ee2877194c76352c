# frozen_string_literal: true

require "test_helper"
require "castellan"
require "serializer/shop"

# `as_stored: true` writes a column as it is in the table; `association:` renames a relationship.
class AsStoredTest < Minitest::Test
  Shop = SerializerCases

  # Changes records in an after_find callback and in an overridden reader.
  class Changed < Shop::ShopRecord
    self.table_name = "shop_variants"
    after_find { self.sku = "found" }
    def position = "by hand"
  end

  # Skips the callback and overrides a reader.
  class ByHand < Shop::ShopRecord
    self.table_name = "shop_variants"
    skip_callback :initialize, :after, :fill_preferences
    def position = "by hand"
  end

  def test_explain_names_the_callback_its_source_and_the_fix
    line = File.readlines(File.join(ROOT, "test/serializer/shop.rb")).index { |text| text.include?("def fill_preferences") } + 1
    text = variants(attributes: %i[sku]).document.explain
    assert_includes text, "sku: the callback after_initialize :fill_preferences (test/serializer/shop.rb:#{line}) of #{Shop::Variant} " \
                          "may set sku; write as_stored: true for the column as it is in the table"
  end

  def test_explain_names_a_reader_and_its_source
    assert_match %r{position: AsStoredTest::ByHand reads position by its own method \(test/rows/as_stored_test.rb:\d+\); write as_stored},
                 variants(model: ByHand, attributes: %i[position]).document.explain
  end

  def test_a_stored_column_instantiates_no_model
    resource = variants(attributes: %i[sku weight], as_stored: true) { attribute :name, from: "product.name", as_stored: true }
    assert_equal 0, made { resource.render(Shop::Variant.order(:id)) }
    assert_operator made { variants(attributes: %i[sku]).render(Shop::Variant.order(:id)) }, :>, 3
  end

  def test_a_stored_column_is_written_as_with_the_models_reader
    stored, read = [true, false].map do |as_stored|
      variants(attributes: %i[sku weight], as_stored: as_stored) { attribute :name, from: "product.name", as_stored: as_stored }
    end
    scope = Shop::Variant.order(:id)
    assert_operator scope.count, :>, 3
    [scope, scope.to_a].each { |given| assert_equal read.render(given), stored.render(given) }
  end

  def test_stored_columns_skip_methods_and_callbacks_for_rows_and_records
    resource = variants(model: Changed, attributes: %i[sku position], as_stored: true)
    opaque = Class.new(resource) { attribute(:upper) { |record| record.sku.upcase } }
    scope = Changed.order(:id)
    expected = Shop::Variant.order(:id).map { |variant| { "sku" => variant.sku, "position" => variant.position } }
    [resource.render(scope), resource.render(scope.to_a), opaque.render(scope)].each do |document|
      assert_equal(expected, JSON.parse(document)["data"].map { |one| one["attributes"].except("upper") })
    end
    assert_equal(["FOUND"], JSON.parse(opaque.render(scope))["data"].map { |one| one["attributes"]["upper"] }.uniq)
  end

  def test_a_stored_column_takes_no_block
    error = assert_raises(Castellan::DeclarationError) { variants(attributes: []) { attribute(:x, as_stored: true) { 1 } } }
    assert_includes error.message, "attribute :x: as_stored: writes a column as it is; leave out the block"
  end

  def test_a_relationship_may_have_another_name_than_its_association
    named, other = %i[variant_images images].map { |name| products(name, from: (:variant_images unless name == :variant_images)) }
    scope = Shop::Product.order(:id)
    [scope, scope.to_a, scope.includes(:variant_images).to_a].each do |given|
      [nil, "images"].each do |include|
        expected = named.render(given, include: include&.sub("images", "variant_images"))
        assert_equal expected.gsub("variant_images", "images"), other.render(given, include: include)
      end
    end
    assert_includes other.render(scope), '"images":{"data":[{"type":"images","id":"1"}'
  end

  def test_a_relationship_of_an_unknown_association_raises
    error = assert_raises(Castellan::DeclarationError) { products(:images, from: :pictures).render }
    assert_includes error.message, "pictures"
    error = assert_raises(Castellan::DeclarationError) { Class.new(Castellan::Resource) { has_many :images, :pictures, from: :variant_images } }
    assert_includes error.message, "names the association of one relationship; declare :images, :pictures one by one"
  end

  private

  def variants(attributes:, model: Shop::Variant, as_stored: false, &body)
    Class.new(Castellan::Resource) do
      model model
      type "variants"
      attributes(*attributes, as_stored: as_stored)
      class_eval(&body) if body
    end
  end

  def products(name, from:)
    images = Class.new(Castellan::Resource) do
      model Shop::Image
      type "images"
      attributes :alt, as_stored: true
    end
    Class.new(Castellan::Resource) do
      model Shop::Product
      type "products"
      has_many name, from: from, resource: images
    end
  end

  def made(&block)
    count = 0
    subscriber = ->(*, event) { count += event[:record_count] }
    ActiveSupport::Notifications.subscribed(subscriber, "instantiation.active_record", &block)
    count
  end
end
