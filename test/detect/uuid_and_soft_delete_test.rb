# frozen_string_literal: true

require "test_helper"
require "active_record"
require "castellan/detect"

# Loops of a Rails application with UUIDs for keys and rows that are deleted softly.
class UuidAndSoftDeleteTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  # Accepts only strings.
  class CodeType < ActiveRecord::Type::String
    def serialize(value) = value.upcase
  end

  class Product < Base
    has_many :reviews, class_name: "UuidAndSoftDeleteTest::Review"
    has_many :visits, class_name: "UuidAndSoftDeleteTest::Visit"
    has_many :approved_reviews, -> { where(approved: true).order(:id) }, class_name: "UuidAndSoftDeleteTest::Review"
  end

  class Review < Base
    default_scope { where(deleted_at: nil) }
    attribute :code, CodeType.new
    belongs_to :product, optional: false, class_name: "UuidAndSoftDeleteTest::Product"
    scope :newest, -> { order(id: :desc) }
  end

  class Visit < Base
    default_scope { order(created_at: :desc) }
  end

  def setup
    needs :postgres
    Base.establish_connection(Castellan::TestServers.postgres_url)
    Base.connection.create_table(:products, id: :uuid)
    Base.connection.create_table(:reviews) do |table|
      table.uuid :product_id
      table.string :code
      table.boolean :approved
      table.datetime :deleted_at
    end
    Base.connection.create_table(:visits) { |table| table.uuid(:product_id) && table.datetime(:created_at) }
    [Product, Review, Visit].each(&:reset_column_information)
    4.times { |n| Product.create!.visits.create! && Review.create!(product: Product.create!, code: "c#{n}") }
  end

  def teardown = Base.remove_connection

  def test_a_grouped_calculation_by_a_uuid_is_suggested
    finding = only { Product.all.to_a.each { |product| product.reviews.count } }
    assert_includes finding.fix.to_s, ".where(product_id: values).group(:product_id).count", finding.fix_refused
  end

  def test_an_order_of_the_model_or_of_a_scope_is_dropped_where_rows_are_grouped
    values = Product.ids
    answers = [-> { Product.all.each { |product| product.visits.count } },
               -> { Product.all.each { |product| product.reviews.newest.maximum(:code) } },
               -> { Product.all.each { |product| product.visits.exists? } }].map do |work|
      eval(only(&work).fix[/query once: (.*)/, 1], binding) # rubocop:disable Security/Eval
    end
    assert_equal [4, 4, 4], answers.map(&:size)
    assert_empty answers[0].keys - values
    assert_equal [[1], %w[C0 C1 C2 C3], answers[0].keys.sort], [answers[0].values.uniq, answers[1].values.sort, answers[2].sort]
  end

  def test_a_column_that_the_model_and_the_call_order_by_is_named_once
    fix = only { Product.all.each { |product| product.visits.order(:created_at, :id).first } }.fix
    assert_includes fix, "has_one :last_visit, -> { order(created_at: :desc, id: :asc) }"
  end

  def test_a_column_whose_type_takes_only_strings_has_a_fix
    finding = only { %w[C0 C1 C2 C3].each { |code| Review.where(code: code).count } }
    assert_includes finding.fix.to_s, ".where(code: values).group(:code).count", finding.fix_refused
  end

  def test_the_association_of_the_same_condition_is_named
    finding = only do
      Product.all.to_a.each { |product| [product.reviews.order(:id).last, product.approved_reviews.loaded?] }
    end
    assert_equal "UuidAndSoftDeleteTest::Product#reviews", finding.association
  end

  def test_new_records_of_one_owner_are_a_loop_of_writes
    product = Product.first.id
    findings = Castellan::Detect.watch(slow_ms: nil) { 3.times { Review.create!(product_id: product) } }
    assert_equal [[:write_loop, 3]], findings.map { |finding| [finding.kind, finding.count] }, findings.join("\n")
  end

  private

  def only(&block)
    findings = Castellan::Detect.watch(slow_ms: nil, &block)
    assert_equal 1, findings.size, findings.join("\n")
    findings.first
  end
end
