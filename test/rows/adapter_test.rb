# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"

# Both adapters answer the same 20 methods, and their parts what the room asks of both.
class RowsAdapterTest < Minitest::Test
  METHODS = %i[model dialect types scopes instances table columns primary_key associations association at related stable_path?
               loaded_classes same_database? fetch session apart snapshot json].freeze

  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Pen < Base; end

  def setup
    Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    Base.connection.create_table(:pens) { |table| table.string(:colour) }
    @database = Sequel.connect("sqlite:/")
    @database.create_table(:pens) { primary_key(:id) && String(:colour) }
    @adapters = [Pen, Class.new(Sequel::Model(@database[:pens])), @database[:pens]].map { |object| Castellan::Rows.for(object) }
  end

  def teardown
    forget(@database)
    Base.remove_connection
    super
  end

  def test_an_adapter_answers_twenty_methods_and_no_more
    @adapters.each { |adapter| assert_equal METHODS.sort, public_methods_of(adapter).sort }
    assert_equal 20, METHODS.size
  end

  # ActiveRecord also has those of through associations' foreign keys and indexes of its own.
  def test_the_parts_of_both_adapters_have_the_same_methods
    active_record, *sequel = @adapters
    further = { types: %i[indexed? name references?], scopes: %i[expressions?], instances: %i[preloads_same? rows] }
    further.each do |part, own|
      wanted = public_methods_of(active_record.public_send(part)) - own
      sequel.each { |adapter| assert_empty wanted - public_methods_of(adapter.public_send(part)), part }
    end
  end

  private

  def public_methods_of(object)
    own = object.class.ancestors.select { |one| one.name.to_s.start_with?("Castellan") }
    [object.class, *own].uniq.flat_map { |one| one.public_instance_methods(false) }.uniq
  end
end
