# frozen_string_literal: true

require "test_helper"
require "open3"

# The gem as its users get it: built, installed into an empty directory of gems, with a compiler and without, and run.
class PackagingTest < Minitest::Test
  SPEC = Dir.chdir(ROOT) { Gem::Specification.load("castellan.gemspec") }
  NEVER = %r{\.(?:lock|log|so|o|bundle|sqlite3|sqlite3-\w+|gem)\z|(?:\A|/)(?:tmp|log|\.bundle|node_modules|castellan-report)/|Makefile\z}

  def test_the_gem_holds_the_library_and_the_extension
    needed = Dir.chdir(ROOT) { Dir["{lib,exe}/**/*.rb", "exe/*", "ext/**/*.{c,h,rb}", "docs/*.md", "README.md", "CHANGELOG.md", "LICENSE"] }
    assert_empty needed.grep_v(%r{/vendor/}) - SPEC.files
    assert_empty SPEC.files.grep(/demo|\Aexamples/)
  end

  def test_the_gem_holds_no_locks_databases_logs_or_builds
    assert_empty SPEC.files.grep(NEVER)
  end

  def test_the_gem_needs_no_other_gem
    assert_empty SPEC.runtime_dependencies
  end

  def test_the_gem_names_its_pages
    assert_match(%r{\Ahttps://}, SPEC.homepage)
    uris = SPEC.metadata.values_at("homepage_uri", "source_code_uri", "changelog_uri", "documentation_uri")
    assert(uris.all? { |uri| uri.start_with?(SPEC.homepage) })
  end

  def test_the_installed_gem_runs_with_the_extension
    install(path: ENV.fetch("PATH")) do |run|
      assert_includes run.call("-S", "castellan", "--help"), "castellan doctor"
      assert_equal "true", run.call("-e", "require 'castellan'; print Castellan::Serialize.native?")
    end
  end

  def test_the_installed_gem_runs_without_a_compiler
    with_make_alone do |path|
      install(path: path) do |run|
        assert_includes run.call("-S", "castellan", "--help"), "castellan doctor"
        assert_equal "false", run.call("-e", "require 'castellan'; print Castellan::Serialize.native?")
        # From Ruby 3.4, Bundler loads bigdecimal only if a gem of the application needs it.
        assert_equal "nil", run.call("-e", "require 'castellan'; Castellan::Serialize; print defined?(BigDecimal).inspect")
      end
    end
  end

  private

  # A directory of programs without a compiler.
  def with_make_alone
    Dir.mktmpdir do |dir|
      programs = %w[make sh rm install mkdir].to_h { |name| [name, ENV["PATH"].split(":").map { |path| File.join(path, name) }] }
      programs.each { |name, paths| File.symlink(paths.find { |path| File.executable?(path) }, File.join(dir, name)) }
      yield dir
    end
  end

  # Builds and installs the gem where no other gem is, and yields what runs Ruby there.
  def install(path:)
    Dir.mktmpdir do |dir|
      env = { "GEM_HOME" => dir, "GEM_PATH" => dir, "PATH" => path, "RUBYOPT" => "-W0", "RUBYLIB" => nil }
      package = File.join(dir, "castellan.gem")
      ruby({ "RUBYOPT" => "-W0" }, "-S", "gem", "build", "castellan.gemspec", "--output", package)
      ruby(env, gem_command, "install", "--local", "--no-document", "--bindir", File.join(dir, "bin"), package)
      yield ->(*arguments) { ruby(env.merge("PATH" => "#{dir}/bin:#{path}"), *arguments, chdir: dir) }
    end
  end

  def gem_command = File.join(RbConfig::CONFIG["bindir"], RbConfig::CONFIG["ruby_install_name"].sub("ruby", "gem"))

  def ruby(env, *arguments, chdir: ROOT)
    output, status = Bundler.with_unbundled_env { Open3.capture2e(env, RbConfig.ruby, *arguments, chdir:) }
    assert status.success?, output
    output
  end
end
