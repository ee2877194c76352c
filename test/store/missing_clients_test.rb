# frozen_string_literal: true

require "test_helper"
require "open3"

# Stores whose client library is not in the bundle.
class MissingClientsTest < Minitest::Test
  def test_a_store_without_its_gem_names_the_line_of_the_gemfile
    { "RedisStore" => "redis-client", "MemcachedStore" => "dalli" }.each do |store, gem|
      program = "require 'castellan'; begin; Castellan::Store::#{store}; rescue Castellan::Error => error; print error.message; end"
      lib = File.join(ROOT, "lib")
      output, = Open3.capture2e({ "RUBYOPT" => nil }, RbConfig.ruby, "--disable-gems", "-I#{lib}", "-e", program)
      assert_equal "Castellan::Store::#{store} needs #{gem}: write gem \"#{gem}\" into the Gemfile", output
    end
  end
end
