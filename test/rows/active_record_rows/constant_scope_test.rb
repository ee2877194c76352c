# frozen_string_literal: true

require "test_helper"
require "active_record"
require "castellan/rows"

class ConstantScopeTest < Minitest::Test
  ConstantScope = Castellan::Rows::ActiveRecordRows::Association::ConstantScope

  class Owner < ActiveRecord::Base
    has_many :ordered, -> { order(:id) }, class_name: "ConstantScopeTest::Owner"
    has_many :recent, -> { where("created_at > ?", Time.now) }, class_name: "ConstantScopeTest::Owner"
  end

  def test_scopes_of_query_methods_and_literals_are_constant
    [-> { order(:id) }, -> { where(on_behalf: false).order(id: :desc) }, -> { where("state = 'new'").limit(3).distinct },
     -> { where.not(kind: %w[a b]) }, -> { where(a: nil, b: 1, c: 0) }].each do |scope|
      assert ConstantScope.constant?(scope), RubyVM::InstructionSequence.of(scope).disasm
    end
  end

  def test_scopes_that_may_read_the_time_or_a_variable_are_not_constant
    tenant = 1
    [-> { where(tenant: tenant) }, -> { where("at < ?", Time.now) }, -> { published }, -> { order(Arel.sql("random()")) },
     -> { where("id = #{rand}") }, -> { where(tenant: Thread.current[:tenant]) }, -> { where(id: @id) }, -> { where(id: $stderr) },
     -> { where(id: [tenant]) }, -> { where(at: ..Time.now) }, -> { order { 1 } }, method(:puts).to_proc].each do |scope|
      refute ConstantScope.constant?(scope)
    end
  end

  # Rails wraps a scope without arguments; the wrapper's variable `scope` holds the block as written.
  def test_the_original_scope_is_found_in_the_wrapper_of_rails
    assert ConstantScope.constant?(Owner.reflect_on_association(:ordered).scope)
    refute ConstantScope.constant?(Owner.reflect_on_association(:recent).scope)
  end
end
