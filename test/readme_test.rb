# frozen_string_literal: true

require "test_helper"
require "support/snippets"

# Runs every block of the README and of docs/ that is marked as runnable (test/support/snippets.rb says how to mark one), and looks for
# what they refer to.
class ReadmeTest < Minitest::Test
  PAGES = Dir.glob(%w[README.md docs/*.md], base: ROOT).freeze

  PAGES.each do |page|
    Castellan::Snippets.parse(File.read(File.join(ROOT, page))).each do |snippet|
      define_method("test_line_#{snippet.line}_of_#{page.tr("/.", "__")}_runs") do
        needs(*snippet.needs)
        output, errors, passed = Castellan::Snippets.run(snippet, root: ROOT)
        assert passed, "#{page}:#{snippet.line}\n#{output}#{errors}"
        assert_equal snippet.output, output if snippet.output
      end
    end
  end

  def test_links_of_the_pages_point_to_files
    lost = PAGES.flat_map do |page|
      links = File.read(File.join(ROOT, page)).scan(/\]\(([^)#\s]+)/).flatten.grep_v(/\A[a-z]+:/)
      links.reject { |link| File.exist?(File.expand_path(link, File.join(ROOT, File.dirname(page)))) }.map { |link| "#{page}: #{link}" }
    end
    assert_empty lost
  end

  def test_every_promise_names_tests_that_exist
    named = File.read(File.join(ROOT, "docs/promises.md")).scan(%r{`([a-z_/]+_test\.rb)`}).flatten.uniq
    assert_operator named.size, :>, 40
    assert_empty(named.reject { |path| File.exist?(File.join(ROOT, "test", path)) })
  end

  # `store/linter.rb` in docs/design.md is lib/castellan/store/linter.rb.
  def test_files_that_the_design_names_exist
    named = File.read(File.join(ROOT, "docs/design.md")).scan(%r{`([a-z_/.]+/[a-z_]+\.(?:rb|c|h|md))`}).flatten.uniq
    assert_operator named.size, :>, 30
    there = ["", "lib/castellan/"].product(named.grep_v(%r{/x_})).select { |below, path| File.exist?(File.join(ROOT, below, path)) }
    assert_empty named.grep_v(%r{/x_}) - there.map(&:last)
  end
end
