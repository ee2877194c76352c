# frozen_string_literal: true

require_relative "active_record_world"
require_relative "sequel_world"

# Anonymous model classes, as in tests and scripts.
class NamelessModelsTest < Minitest::Test
  def test_anonymous_models_of_active_record_are_supported
    users = Class.new(ActiveRecordWorld::Base) do
      self.table_name = "users"
      has_many :tokens, anonymous_class: ActiveRecordWorld::Token, foreign_key: :user_id
    end
    assert_equal [:n_plus_one, 5, "(no name)#tokens"], only { users.all.to_a.each { |user| user.tokens.to_a } }
    assert_equal [:n_plus_one, 5, nil], only { users.all.to_a.each { |user| user.tokens.count } }
    assert_equal [:n_plus_one, 3, nil], only { [1, 2, 3].each { |id| users.find(id) } }
    assert_empty(Castellan::Detect.watch(slow_ms: nil) { users.preload(:tokens).each { |user| user.tokens.to_a } })
  end

  def test_anonymous_models_of_sequel_are_supported
    users = Class.new(Sequel::Model(SequelWorld::DB[:users])) { one_to_many :tokens, class: SequelWorld::Token, key: :user_id }
    assert_equal [:n_plus_one, 5, "(no name)#tokens"], only { users.all.each(&:tokens) }
    assert_equal [:n_plus_one, 5, nil], only { users.all.each { |user| user.tokens_dataset.count } }
    assert_empty(Castellan::Detect.watch(slow_ms: nil) { users.eager(:tokens).all.each(&:tokens) })
  end

  private

  def only(&block)
    findings = Castellan::Detect.watch(slow_ms: nil, &block)
    assert_equal 1, findings.size, findings.join("\n")
    findings.first.to_h.values_at(:kind, :count, :association)
  end
end
