# frozen_string_literal: true

require "test_helper"
require "support/source_tree"

class SourceTreeTest < Minitest::Test
  FILES = {
    "castellan/plan.rb" => "require_relative 'plan/node'\nmodule Castellan\n  module Plan\n    LIMIT = 1\n  end\nend\n",
    "castellan/plan/node.rb" => <<~RUBY,
      module Castellan
        module Plan
          class Node < Error
            def limit = LIMIT
            def one = Cache::Key
          end
        end
      end
    RUBY
    "castellan/cache.rb" => <<~RUBY,
      require "json"
      module Castellan
        autoload :Plan, "castellan/plan"
        module Cache
          SECRET = ::JSON
          private_constant :SECRET
          class Key
            def plan = ::Castellan::Plan::Node
            def plans = Plan::Unknown
          end
        end
      end
    RUBY
    "castellan/errors.rb" => "module Castellan\n  class Error < StandardError; end\nend\n"
  }.freeze

  def test_definitions_are_full_names
    assert_equal %w[Castellan Castellan::Plan Castellan::Plan::Node], tree.definitions["castellan/plan/node.rb"]
    assert_equal %w[Castellan::Cache::SECRET], tree.private_definitions["castellan/cache.rb"]
  end

  def test_references_are_looked_up_as_ruby_does
    expected = { "Castellan::Error" => 3, "Castellan::Plan::LIMIT" => 4, "Castellan::Cache::Key" => 5 }
    assert_equal expected, tree.references["castellan/plan/node.rb"]
  end

  def test_foreign_constants_are_left_out_and_unknown_names_are_cut
    assert_equal({ "Castellan::Plan::Node" => 8, "Castellan::Plan" => 9 }, tree.references["castellan/cache.rb"])
  end

  def test_requires_are_features_from_the_root
    assert_equal({ "castellan/plan/node" => 1 }, tree.requires["castellan/plan.rb"])
    assert_equal({ "json" => 1, "castellan/plan" => 3 }, tree.requires["castellan/cache.rb"])
  end

  private

  def tree
    Dir.mktmpdir do |dir|
      write_files(dir, FILES)
      Castellan::SourceTree.new(dir).tap(&:references)
    end
  end
end
