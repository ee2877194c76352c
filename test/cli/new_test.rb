# frozen_string_literal: true

require "test_helper"
require "castellan/cli"
require "open3"
require "stringio"
require "tmpdir"

class CLINewTest < Minitest::Test
  # The new application's own commands, in the bundle of this checkout.
  def test_the_new_application_migrates_and_passes_its_tests
    in_new_directory do |directory|
      status, output, errors = new("api", "library")
      assert_equal [0, ""], [status, errors]
      assert_includes output, "create library/app.rb"
      root = File.expand_path("../..", __dir__)
      env = { "BUNDLE_GEMFILE" => File.join(root, "Gemfile"), "RUBYLIB" => File.join(root, "lib"),
              "DATABASE_URL" => nil, "REDIS_URL" => nil }
      output, status = Open3.capture2e(env, "bundle", "exec", "rake", "migrate", "test", chdir: File.join(directory, "library"))
      assert_predicate status, :success?, output
      assert_match(/2 runs, \d+ assertions, 0 failures, 0 errors/, output)
      loaded = 'require "rack/builder"; Rack::Builder.parse_file("config.ru"); puts DB.pool.size'
      output, = Open3.capture2e(env, "bundle", "exec", "ruby", "-e", loaded, chdir: File.join(directory, "library"))
      assert_equal "0", output.strip, "forked workers share a connection"
      files = Dir.glob(File.join(directory, "library/**/*")).select { |path| File.file?(path) }
      assert_empty(files.select { |path| File.binread(path).include?("<name>") })
    end
  end

  def test_wrong_arguments_write_nothing
    in_new_directory do |directory|
      [[], ["api"], %w[site library], %w[api ../library], %w[api a b], %w[api --force a]].each do |arguments|
        status, _, errors = new(*arguments)
        assert_equal 2, status, arguments.inspect
        assert_includes errors, "castellan new"
      end
      assert_empty Dir.children(directory)
    end
  end

  def test_a_folder_that_exists_is_left_alone
    in_new_directory do |directory|
      Dir.mkdir(File.join(directory, "library"))
      assert_equal [1, "", "castellan new: library exists already: write another name\n"], new("api", "library")
      assert_empty Dir.children(File.join(directory, "library"))
    end
  end

  private

  def in_new_directory
    Dir.mktmpdir { |directory| Dir.chdir(directory) { yield directory } }
  end

  def new(*arguments)
    out = StringIO.new
    err = StringIO.new
    [Castellan::CLI.call(["new", *arguments], out: out, err: err), out.string, err.string]
  end
end
