# frozen_string_literal: true

require "rbconfig"

module Benchmarks
  # Runs a benchmark in the bundle of benchmark/Gemfile, and installs the bundle if needed.
  #
  #   Benchmarks::OwnBundle.enter(__FILE__)   # first line of a benchmark; returns only inside the bundle
  #
  # Needs the gem server for the installation. Aborts with a message if the bundle cannot be installed.
  module OwnBundle
    GEMFILE = File.expand_path("../Gemfile", __dir__)
    LIB = File.expand_path("../../lib", __dir__)

    module_function

    # @param script [String] the file to run again in the bundle
    # @param gemfile [String]
    def enter(script, gemfile: GEMFILE)
      return if ENV["BUNDLE_GEMFILE"] == gemfile && defined?(Bundler)

      require "bundler"
      Bundler.with_unbundled_env do
        ENV["BUNDLE_GEMFILE"] = gemfile
        install(gemfile) unless system("bundle", "check", out: File::NULL, err: File::NULL)
        exec(RbConfig.ruby, "-rbundler/setup", "-I#{LIB}", File.expand_path(script), *ARGV)
      end
    end

    def install(gemfile)
      warn "Installing what the benchmark compares with (#{gemfile}) …"
      system("bundle", "install", "--quiet") ||
        abort("The bundle of #{gemfile} cannot be installed; see above. Without it there is nothing to compare with.")
    end
    private_class_method :install
  end
end
