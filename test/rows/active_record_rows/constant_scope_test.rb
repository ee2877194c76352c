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
    [-> { where(tenant: tenant) }, -> { where(tenant:) }, -> { where("at < ?", Time.now) }, -> { published },
     -> { order(Arel.sql("random()")) }, -> { where("id = #{rand}") }, -> { where(tenant: Thread.current[:tenant]) },
     -> { where(id: @id) }, -> { where(id: $stderr) }, -> { where(id: [tenant]) }, -> { where(at: ..Time.now) },
     -> { order { 1 } }, method(:puts).to_proc].each do |scope|
      refute ConstantScope.constant?(scope)
    end
  end

  class Kept < ActiveRecord::Base
    default_scope { where(deleted_at: nil) }
    default_scope do
      where(hidden: false).order(:id)
    end
    default_scope -> { where.not(id: 0) }
  end

  class Changing < ActiveRecord::Base
    default_scope { where(tenant: Thread.current[:tenant]) }
    default_scope { where(name:) }
    default_scope { published }
    default_scope do
      where(at: ..Time.now)
    end
    default_scope Module.new { def self.call = nil }
  end

  def test_default_scopes_are_read_like_those_of_associations
    assert_equal [true] * 3, Kept.default_scopes.map { |one| ConstantScope.constant?(one.scope) }
    assert_empty Changing.default_scopes.select { |one| ConstantScope.constant?(one.scope) }
  end

  # Rails wraps a scope without arguments; the wrapper's variable `scope` holds the block as written.
  def test_the_original_scope_is_found_in_the_wrapper_of_rails
    assert ConstantScope.constant?(Owner.reflect_on_association(:ordered).scope)
    refute ConstantScope.constant?(Owner.reflect_on_association(:recent).scope)
  end
end
