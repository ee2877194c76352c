# frozen_string_literal: true

require "test_helper"

# docs/http.md names a test for each section of the RFCs, and every option.
class HTTPCacheDocumentationTest < Minitest::Test
  PAGE = File.read(File.join(ROOT, "docs/http.md"))
  ROW = %r{^\| (RFC \d+(?: §[\d.]+)?)[^|]* \| \[\w+\.rb\]\(\.\./(test/[\w/]+\.rb)\)(?:, `(test_\w+)`)? \|$}
  ROWS = PAGE.scan(ROW)

  def test_every_row_is_read
    assert_equal PAGE.scan(/^\| RFC /).size, ROWS.size
    assert_operator ROWS.size, :>, 35
  end

  ROWS.each do |section, file, name|
    define_method("test_#{section} of the page is tested in #{file} #{name}") do
      text = File.read(File.join(ROOT, file))
      assert_includes text, name ? "def #{name}\n" : section
    end
  end

  def test_every_option_is_in_the_table
    options = [Castellan::HTTPCache, Castellan::HTTPCache::CacheOptions].flat_map do |type|
      type.instance_method(:initialize).parameters.filter_map { |kind, name| name if kind == :key }
    end
    assert_operator options.size, :>, 10
    assert_empty(options.reject { |name| PAGE.include?("`#{name}:`") } - %i[clock])
  end
end
