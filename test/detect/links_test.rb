# frozen_string_literal: true

require_relative "active_record_world"
require_relative "sequel_world"

# Finds the association of a calculation or finder that only its SQL reveals.
class DetectLinksTest < Minitest::Test
  World = ActiveRecordWorld

  class Author < World::Base
    self.table_name = "users"
    has_many :keys, class_name: "ActiveRecordWorld::Token", foreign_key: :user_id, inverse_of: false
    has_many :own_keys, -> { where(on_behalf: false) }, class_name: "ActiveRecordWorld::Token", foreign_key: :user_id, inverse_of: false
    has_many :articles, class_name: "ActiveRecordWorld::Post", foreign_key: :user_id, inverse_of: false
    has_many :essays, class_name: "ActiveRecordWorld::Post", foreign_key: :user_id, inverse_of: false
    has_many :odd_keys, ->(one) { where(id: one.id) }, class_name: "ActiveRecordWorld::Token", foreign_key: :user_id, inverse_of: false
  end

  class Writer < Sequel::Model(SequelWorld::DB[:users])
    one_to_many :keys, class: "SequelWorld::Token", key: :user_id
    one_to_many :own_keys, class: "SequelWorld::Token", key: :user_id, conditions: { on_behalf: false }
  end

  def test_the_association_with_the_queried_scope_is_chosen
    assert_equal "DetectLinksTest::Author#keys", only { Author.all.map { |author| number_of(author, :keys) } }.association
    assert_equal "DetectLinksTest::Author#own_keys", only { Author.all.map { |author| number_of(author, :own_keys) } }.association
    sequel = %i[keys_dataset own_keys_dataset].map { |name| only { Writer.all.map { |writer| number_of(writer, name) } }.association }
    assert_equal ["DetectLinksTest::Writer#keys", "DetectLinksTest::Writer#own_keys"], sequel
  end

  def test_the_association_may_be_named_above_the_line_of_the_query
    finding = only do
      Author.all.map do |author|
        author.keys
              .where(on_behalf: false)
              .order(:secret)
              .first
      end
    end
    assert_equal "DetectLinksTest::Author#keys", finding.association
  end

  def test_two_associations_that_match_equally_are_both_named
    finding = only { Author.all.map { |author| number_of(author, :essays) } }
    assert_equal "DetectLinksTest::Author#articles", finding.association
    assert_match(/ \(ambiguous: DetectLinksTest::Author#essays sends the same query\)\z/, finding.fix)
    refute_includes only { Author.all.map { |author| author.essays.count } }.fix, "ambiguous"
    refute_includes only { Author.all.map { |author| author.essays.to_a } }.fix, "ambiguous"
  end

  class Reader < World::Base
    self.table_name = "users"
    has_many :odd_keys, ->(one) { where.not(id: one.id) }, class_name: "ActiveRecordWorld::Token", foreign_key: :user_id, inverse_of: false
    has_many :first_keys, -> { order(:id).limit(2) }, class_name: "ActiveRecordWorld::Token", foreign_key: :user_id, inverse_of: false
  end

  class Holder < Reader
    has_many :keys, class_name: "ActiveRecordWorld::Token", foreign_key: :user_id, inverse_of: false
  end

  def test_an_association_with_a_limit_or_of_its_owner_is_not_guessed
    finding = only { Reader.all.map { |one| World::Token.where(user_id: one.id).to_a } }
    assert_nil finding.association
    assert_match(/: ActiveRecordWorld::Token\.where\(user_id: values\)\.group_by\(&:user_id\)\z/, finding.fix)
    finding = only { Holder.all.map { |one| World::Token.where(user_id: one.id).to_a } }
    assert_equal "DetectLinksTest::Holder#keys", finding.association
    refute_includes finding.fix, "ambiguous"
    assert_equal "DetectLinksTest::Reader#odd_keys", only { Reader.all.map { |one| one.odd_keys.count } }.association
  end

  private

  def number_of(owner, name) = owner.public_send(name).count

  def only(&block)
    findings = Castellan::Detect.watch(slow_ms: nil, &block)
    assert_equal 1, findings.size, findings.join("\n")
    findings.first
  end
end
