# frozen_string_literal: true

require "test_helper"
require "support/snippets"

# Runs every block of the README that is marked as runnable; test/support/snippets.rb says how to mark one.
class ReadmeTest < Minitest::Test
  README = File.join(ROOT, "README.md")

  (File.exist?(README) ? Castellan::Snippets.parse(File.read(README)) : []).each do |snippet|
    define_method("test_line_#{snippet.line}_of_the_readme_runs") do
      needs(*snippet.needs)
      output, errors, passed = Castellan::Snippets.run(snippet, root: ROOT)
      assert passed, "README.md:#{snippet.line}\n#{output}#{errors}"
      assert_equal snippet.output, output if snippet.output
    end
  end
end
