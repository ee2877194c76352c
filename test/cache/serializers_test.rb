# frozen_string_literal: true

require "test_helper"

# The examples in serializers/: each keeps its serializer and has Castellan's cache.
class CacheSerializersTest < Minitest::Test
  %w[alba jbuilder active_model_serializers].each do |name|
    define_method("test_#{name}_is_computed_once_and_again_after_a_write") do
      answer = JSON.parse(run_ruby(File.join(__dir__, "serializers/#{name}.rb")).lines.last)
      first = answer.fetch("document").first
      assert_equal [1, "Post 0", [{ "body" => "changed" }], "Ada"], first.values_at("id", "title", "comments", "author")
      assert_equal [[1, 2], true], answer.values_at("computed", "changed")
    end
  end
end
