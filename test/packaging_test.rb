# frozen_string_literal: true

require "test_helper"
require "open3"

# The gem as its users get it: built, installed into an empty directory of gems, with a compiler and without, and run.
class PackagingTest < Minitest::Test
  SPEC = Dir.chdir(ROOT) { Gem::Specification.load("castellan.gemspec") }
  NEVER = %r{\.(?:lock|log|so|o|bundle|sqlite3|sqlite3-\w+|gem)\z|(?:\A|/)(?:tmp|log|\.bundle|node_modules|castellan-report)/|Makefile\z}

  def test_the_gem_holds_the_library_the_extension_and_the_examples
    needed = Dir.chdir(ROOT) do
      Dir["{lib,exe}/**/*.rb", "exe/*", "ext/**/*.{c,h,rb}", "ext/**/Rakefile",
          "examples/**/{Gemfile,config.ru,steps.yml,setup}", "LICENSE"]
    end
    needed << "castellan.gemspec" # the examples' Gemfiles name the gem by its path
    assert_empty needed.grep_v(%r{/vendor/}) - SPEC.files
  end

  def test_the_gem_holds_no_locks_databases_logs_or_builds
    assert_empty SPEC.files.grep(NEVER)
  end

  # Rake builds the extension; see ext/castellan/Rakefile.
  def test_the_gem_needs_no_other_gem_than_rake
    assert_equal %w[rake], SPEC.runtime_dependencies.map(&:name)
  end

  def test_the_installed_gem_runs_with_the_extension
    install(path: ENV.fetch("PATH")) do |run|
      assert_includes run.call("-S", "castellan", "--help"), "castellan doctor"
      assert_equal "true", run.call("-e", "require 'castellan'; print Castellan::Serialize.native?")
    end
  end

  def test_the_installed_gem_runs_without_a_compiler
    install(path: "/nowhere") do |run|
      assert_includes run.call("-S", "castellan", "--help"), "castellan doctor"
      assert_equal "false", run.call("-e", "require 'castellan'; print Castellan::Serialize.native?")
    end
  end

  private

  # Builds and installs the gem where no other gem but Rake is, and yields what runs Ruby there.
  def install(path:)
    Dir.mktmpdir do |dir|
      env = { "GEM_HOME" => dir, "GEM_PATH" => dir, "PATH" => path, "RUBYOPT" => "-W0", "RUBYLIB" => nil }
      lend_rake(dir)
      package = File.join(dir, "castellan.gem")
      ruby({ "RUBYOPT" => "-W0" }, "-S", "gem", "build", "castellan.gemspec", "--output", package)
      ruby(env, gem_command, "install", "--local", "--no-document", "--bindir", File.join(dir, "bin"), package)
      yield ->(*arguments) { ruby(env.merge("PATH" => "#{dir}/bin:#{path}"), *arguments, chdir: dir) }
    end
  end

  def lend_rake(gem_home)
    rake = Gem.loaded_specs.fetch("rake")
    FileUtils.mkdir_p([File.join(gem_home, "gems"), File.join(gem_home, "specifications")])
    FileUtils.ln_s(rake.full_gem_path, File.join(gem_home, "gems"))
    FileUtils.ln_s(rake.loaded_from, File.join(gem_home, "specifications"))
  end

  def gem_command = File.join(RbConfig::CONFIG["bindir"], RbConfig::CONFIG["ruby_install_name"].sub("ruby", "gem"))

  def ruby(env, *arguments, chdir: ROOT)
    output, status = Bundler.with_unbundled_env { Open3.capture2e(env, RbConfig.ruby, *arguments, chdir:) }
    assert status.success?, output
    output
  end
end
