# frozen_string_literal: true

require "test_helper"
require_relative "doctor/doctor_process"

# An application whose code is an engine in installed gems, as shops are deployed: config.ru alone is its own.
class ApplicationInGemsTest < Minitest::Test
  include Castellan::DoctorProcess

  FILES = {
    "gems/gems/shop_core-1.0.0/lib/shop_core.rb" => <<~RUBY,
      require "sequel"
      DB = Sequel.sqlite
      DB.create_table(:items) { primary_key :id; Integer :shelf_id }
      DB.create_table(:shelves) { primary_key :id }
      5.times { DB[:items].insert(shelf_id: DB[:shelves].insert) }
      module Shop
        def self.call(_env) = Items.shelves { |id| DB[:shelves].first(id: id) }
      end
    RUBY
    "gems/gems/shop_items-2.1/lib/shop_items.rb" => <<~RUBY,
      module Items
        def self.shelves = [200, {}, [DB[:items].select_map(:shelf_id).map { |id| yield(id)[:id] }.join(",")]]
      end
    RUBY
    "config.ru" => <<~RUBY
      %w[shop_core-1.0.0/lib/shop_core shop_items-2.1/lib/shop_items].each { |file| require File.join(__dir__, "gems/gems", file) }
      run Shop
    RUBY
  }.freeze

  def test_a_finding_names_the_nearest_line_of_a_gem_that_is_no_framework
    assert_equal "gems/gems/shop_core-1.0.0/lib/shop_core.rb:7", location
  end

  def test_gems_that_count_as_the_application_are_the_application
    assert_equal "gems/gems/shop_items-2.1/lib/shop_items.rb:2", location("Castellan::CallSite.application_gems = %w[shop_i*]")
  end

  private

  def location(line = "")
    files = { **FILES, "config.ru" => "require 'castellan'\n#{line}\n#{FILES.fetch("config.ru")}" }
    with_app(files) do |app|
      app.env = { "GEM_PATH" => [File.join(app.dir, "gems"), *Gem.path].join(":") }
      run = app.doctor("--get", "/", "--json", "--no-memory", "--no-try")
      assert_equal 0, run.status, run.err
      return run.rows.first["findings"].find { |finding| finding["count"] == 5 }["location"]
    end
  end
end
