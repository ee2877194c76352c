# frozen_string_literal: true

require "test_helper"

class StoreLinterTest < Minitest::Test
  class Forgetful < Castellan::Store::MemoryStore
    def increment(_key, _amount = 1, ttl: nil) = 5 # rubocop:disable Lint/UnusedMethodArgument
  end

  class Textual < Castellan::Store::MemoryStore
    def read_multi(keys) = super.transform_values { |bytes| bytes.dup.force_encoding("UTF-8") }
  end

  class Greedy < Castellan::Store::MemoryStore
    def write_multi(entries, ttl: nil, if_absent: false) = super(entries, ttl: ttl, if_absent: if_absent && false)
  end

  class Broken < Castellan::Store::MemoryStore
    def read_multi(_keys) = raise(Castellan::StoreError, "gone")
  end

  def test_a_store_that_lacks_methods
    assert_equal ["Object#read_multi - is missing", "Object#write_multi - is missing", "Object#delete_multi - is missing",
                  "Object#increment - is missing", "Object#compare_and_delete - is missing", "Object#supports? - is missing"],
                 defects(Object.new)
  end

  def test_names_class_method_and_defect
    assert_includes defects(Forgetful.new), "StoreLinterTest::Forgetful#increment - counts [5, 5], not [1, 3]"
    assert_includes defects(Textual.new), "StoreLinterTest::Textual#read_multi - returns UTF-8, not binary"
    assert_includes defects(Greedy.new), "StoreLinterTest::Greedy#write_multi - with if_absent: true, names a key that was there"
    assert_includes defects(Broken.new), "StoreLinterTest::Broken#read_multi - raises Castellan::StoreError: gone"
  end

  def test_call_raises_all_of_them_or_returns_the_store
    error = assert_raises(Castellan::ConfigurationError) { Castellan::Store::Linter.new(Forgetful.new).call }
    assert_includes error.message, "Forgetful#increment"
    store = Castellan::Store::MemoryStore.new
    assert_same store, Castellan::Store::Linter.new(store).call
    assert_equal 0, store.size, "it cleans up what it wrote"
  end

  private

  def defects(store) = Castellan::Store::Linter.new(store).defects
end
