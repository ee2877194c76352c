# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"

# Stores whose client library, and an application whose rack is not in the bundle.
class MissingClientsTest < Minitest::Test
  def test_a_store_without_its_gem_names_the_line_of_the_gemfile
    { "RedisStore" => "redis-client", "MemcachedStore" => "dalli" }.each do |store, gem|
      assert_equal "Castellan::Store::#{store} needs #{gem}: write gem \"#{gem}\" into the Gemfile", error_of("Castellan::Store::#{store}")
    end
  end

  # It loads values with Marshal, and anyone who can write to memcached could run code.
  def test_a_dalli_that_ignores_raw_is_refused
    Dir.mktmpdir do |directory|
      File.write(File.join(directory, "dalli.rb"), 'module Dalli; VERSION = "3.2.15"; end')
      message = error_of("Castellan::Store::MemcachedStore", "-I#{directory}", "-rrubygems")
      assert_match(/MemcachedStore needs dalli 4\.0\.1 or later, got 3\.2\.15.*write gem "dalli", ">= 4\.0\.1"\z/, message)
    end
  end

  # Puma does not depend on it.
  def test_an_application_without_rack_names_the_line_of_the_gemfile
    assert_equal "Castellan.app needs rack: write gem \"rack\" into the Gemfile", error_of("Castellan.app { nil }")
  end

  private

  def error_of(code, *options)
    program = "require 'castellan'; begin; #{code}; rescue Castellan::Error => error; print error.message; end"
    Open3.capture2e({ "RUBYOPT" => nil }, RbConfig.ruby, "--disable-gems", "-I#{File.join(ROOT, "lib")}", *options, "-e", program).first
  end
end
