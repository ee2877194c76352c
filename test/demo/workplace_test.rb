# frozen_string_literal: true

require "test_helper"
require "stringio"
require "castellan/demo"

class WorkplaceTest < Minitest::Test
  GEMFILE = %(gem "castellan", path: "../..", require: false\ngem "rack"\n)

  def test_a_checkout_is_worked_in_where_it_lies
    with_gem do |root, directory|
      assert_equal File.join(root, "examples"), workplace(root, directory, gems: []).examples(out = StringIO.new)
      assert_empty out.string
    end
  end

  def test_an_installed_gem_is_copied_and_the_copy_names_it
    with_gem do |root, directory|
      examples = workplace(root, directory).examples(out = StringIO.new)
      assert_equal File.join(directory, "castellan-examples"), examples
      assert_includes out.string, "The examples are copied to #{examples}"
      assert_equal %(gem "castellan", path: #{root.inspect}, require: false\ngem "rack"\n), File.read(File.join(examples, "users/Gemfile"))
      assert File.executable?(File.join(examples, "users/bin/setup"))
    end
  end

  def test_a_copy_of_this_version_is_kept_with_its_data
    with_gem do |root, directory|
      examples = workplace(root, directory).examples(StringIO.new)
      File.write(File.join(examples, "users/Gemfile"), "changed")
      workplace(root, directory).examples(out = StringIO.new)
      assert_equal ["changed", ""], [File.read(File.join(examples, "users/Gemfile")), out.string]
    end
  end

  def test_a_folder_that_others_made_is_left_alone
    with_gem do |root, directory|
      FileUtils.mkdir_p(File.join(directory, "castellan-examples"))
      error = assert_raises(Castellan::Error) { workplace(root, directory).examples(StringIO.new) }
      assert_includes error.message, "was not made by castellan demo; run it in another folder"
    end
  end

  def test_where_nothing_can_be_written_it_says_so
    with_gem do |root, directory|
      File.write(File.join(directory, "file"), "")
      error = assert_raises(Castellan::Error) { workplace(root, File.join(directory, "file")).examples(StringIO.new) }
      assert_includes error.message, "run castellan demo in a folder that you can write to"
    end
  end

  private

  def workplace(root, directory, gems: [File.dirname(root)])
    Castellan::Demo::Workplace.new(root: root, directory: directory, gems: gems)
  end

  def with_gem
    Dir.mktmpdir do |dir|
      dir = File.realpath(dir)
      root = File.join(dir, "gems/castellan-1")
      FileUtils.mkdir_p([File.join(root, "examples/users/bin"), File.join(dir, "work")])
      File.write(File.join(root, "examples/users/Gemfile"), GEMFILE)
      File.write(File.join(root, "examples/users/bin/setup"), "#!/bin/sh\n", perm: 0o555)
      yield root, File.join(dir, "work")
    end
  end
end
