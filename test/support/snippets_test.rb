# frozen_string_literal: true

require "test_helper"
require "support/snippets"

class SnippetsTest < Minitest::Test
  PAGE = <<~MARKDOWN
    # A page

    ```ruby
    raise "not marked"
    ```

    <!-- run -->
    ```ruby
    require "castellan"
    castle = "keep"
    ```

    <!-- run continues -->
    ```ruby
    puts castle, Castellan.off?
    ```

    which prints

    <!-- output -->
    ```text
    keep
    false
    ```

    <!-- run needs: postgres, redis -->
    ```sh
    ls lib/castellan.rb && false
    ```

    <!-- file: config/a.rb -->
    ```ruby
    A = 1
    ```
  MARKDOWN

  def test_only_marked_blocks_are_found
    assert_equal([["ruby", 7], ["ruby", 13], ["sh", 26]], snippets.map { |snippet| [snippet.language, snippet.line] })
  end

  def test_the_needs_of_a_block_are_parsed
    assert_equal [[], [], %i[postgres redis]], snippets.map(&:needs)
  end

  def test_a_block_continues_the_one_before_and_has_its_output
    output, errors, passed = Castellan::Snippets.run(snippets[1], root: ROOT)
    assert passed, errors
    assert_equal snippets[1].output, output
  end

  def test_a_failing_block_is_detected
    output, _errors, passed = Castellan::Snippets.run(snippets[2], root: ROOT)
    refute passed
    assert_equal "lib/castellan.rb\n", output
  end

  def test_files_of_an_application_have_their_path
    assert_equal({ "config/a.rb" => "A = 1\n" }, Castellan::Snippets.files(PAGE))
  end

  def test_a_block_of_another_language_cannot_be_runnable
    error = assert_raises(ArgumentError) { Castellan::Snippets.parse("<!-- run -->\n```yaml\na: 1\n```\n") }
    assert_includes error.message, "line 1"
  end

  private

  def snippets = Castellan::Snippets.parse(PAGE)
end
