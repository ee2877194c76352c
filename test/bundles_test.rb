# frozen_string_literal: true

require "test_helper"

# The bundles of this repository install on a machine that has Ruby 3.1, a compiler and no header but Ruby's.
class BundlesTest < Minitest::Test
  GEMFILES = Dir.chdir(ROOT) { `git ls-files -- '*Gemfile' '*.gemfile'`.split("\n") }

  def test_what_brings_rails_bounds_the_gems_that_would_need_system_headers
    bringing = GEMFILES.select { |path| text(path).match?(/^\s*gem "(?:rails|railties|action\w+|bullet)"/) }
    assert_operator bringing.size, :>=, 7
    bringing.each do |path|
      assert_match(/^gem "nokogiri", "~> 1\.17\.2"/, text(path), path)
      assert_match(/^gem "rdoc", "< 6\.4"/, text(path), path)
    end
  end

  def test_no_bundle_names_a_registry
    GEMFILES.each { |path| refute_match(%r{https?://}, text(path), path) }
    sources = GEMFILES.grep_v(/\.gemfile\z/).map { |path| text(path)[/^source .*/] }.uniq
    assert_equal ["source Gem.sources.first.uri.to_s"], sources
  end

  private

  def text(path) = File.read(File.join(ROOT, path))
end
