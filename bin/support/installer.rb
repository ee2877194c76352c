# frozen_string_literal: true

require "bundler"
require "fileutils"
require "rbconfig"

module Castellan
  # Installs what bin/test and bin/demo need: gems, and on Debian as root also servers.
  #
  #   Castellan::Installer.new.gems          # for the Gemfile here and that of each example
  #   Castellan::Installer.new.servers       # PostgreSQL, Redis, memcached, Varnish, nginx, Chromium, wrk
  #   Castellan::Installer.new.compile       # the C extension
  #
  # Needs only Ruby, Bundler and a C compiler. Installs missing gems into the system's directory if it is
  # writable, else into vendor/bundle of this checkout, which all Gemfiles share, so that each gem is compiled
  # once. Respects a path that the user configured in Bundler. Runs nothing if nothing is missing.
  class Installer
    ROOT = File.expand_path("../..", __dir__)
    OTHERS = %w[gemfiles/*.gemfile test/doctor/rails_api/Gemfile examples/*/Gemfile examples/*/*/Gemfile].freeze
    GEMFILES = ["Gemfile", *Dir.glob(OTHERS, base: ROOT)]
               .reject { |path| path.include?("/vendor/") || path.end_with?("rails_8_1.gemfile") }.freeze # NewestRuby installs this one
    PROGRAMS = {
      "postgresql" => %w[postgres /usr/lib/postgresql/*/bin/postgres], "redis-server" => %w[redis-server], "memcached" => %w[memcached],
      "varnish" => %w[varnishd], "nginx" => %w[nginx], "haproxy" => %w[haproxy], "chromium" => %w[chromium], "sqlite3" => %w[sqlite3],
      "wrk" => %w[wrk], "varnish-modules" => %w[/usr/lib/*/varnish/vmods/libvmod_xkey.so]
    }.freeze
    POLICY = "/usr/sbin/policy-rc.d"
    RETRIES = 3
    private_constant :POLICY, :RETRIES

    # @param out [IO] shows the progress
    # @param root [String] the checkout
    def initialize(out: $stdout, root: ROOT)
      @out = out
      @root = root
    end

    # @raise [SystemExit] status 1 if Bundler fails; Bundler prints the reason
    def gems(gemfiles = GEMFILES)
      gemfiles.each { |gemfile| bundle(File.join(@root, gemfile)) }
    end

    # @param packages [Array<String>] of Debian
    # @return [Array<String>] those whose programs are still missing
    def servers(packages = PROGRAMS.keys)
      missing = missing_packages & packages
      install(missing) if missing.any? && debian_root?
      missing_packages & packages
    end

    # @raise [SystemExit] status 1 if the compiler fails
    def compile
      run({ "BUNDLE_GEMFILE" => File.join(@root, "Gemfile") }, RbConfig.ruby, "-S", "bundle", "exec", "rake", "--silent", "compile") ||
        stop("the C extension does not compile; run `bundle exec rake compile` to see it alone")
    end

    # @return [Array<String>] the Debian packages whose programs are missing
    def missing_packages
      PROGRAMS.reject { |_, names| names.any? { |name| program?(name) } }.keys
    end

    private

    def bundle(gemfile)
      env = { "BUNDLE_GEMFILE" => gemfile }
      return if there?(env)

      keep_gems_in_checkout(env) unless writable?(Gem.dir)
      return if there?(env)

      @out.puts "Installing the gems of #{gemfile.delete_prefix("#{@root}/")} …"
      run(env, RbConfig.ruby, "-S", "bundle", "install", "--quiet", "--jobs", "4", "--retry", RETRIES.to_s) || stop(advice(gemfile))
    end

    def there?(env) = run(env, RbConfig.ruby, "-S", "bundle", "check", out: File::NULL, err: File::NULL)

    # Writes the local Bundler configuration of each Gemfile, unless the user has configured a path.
    def keep_gems_in_checkout(env)
      return if configured_path?(env)

      run(env, RbConfig.ruby, "-S", "bundle", "config", "set", "--local", "path", File.join(@root, "vendor/bundle"), out: File::NULL)
    end

    def configured_path?(env)
      unbundled { IO.popen([env, RbConfig.ruby, "-S", "bundle", "config", "get", "path", { chdir: directory(env) }], &:read) }
        .include?("Set for")
    end

    def advice(gemfile)
      headers = File.join(RbConfig::CONFIG["rubyhdrdir"].to_s, "ruby.h")
      return "bundle install failed for #{gemfile}" if File.exist?(headers)

      "bundle install failed for #{gemfile}: Ruby's headers are not here (on Debian: apt-get install ruby-dev build-essential)"
    end

    # Does not start services, because the tests start their own servers.
    def install(packages)
      @out.puts "Installing #{packages.join(', ')} …"
      without_services do
        run(apt_env, "apt-get", "-qq", "update") || warn("apt-get update failed")
        run(apt_env, "apt-get", "-qq", "install", "-y", "--no-install-recommends", *packages, out: File::NULL) ||
          warn("apt-get install failed for #{packages.join(' ')}")
      end
    end

    def without_services
      return yield if File.exist?(POLICY)

      begin
        File.write(POLICY, "#!/bin/sh\nexit 101\n", perm: 0o755)
        yield
      ensure
        FileUtils.rm_f(POLICY)
      end
    end

    def apt_env = { "DEBIAN_FRONTEND" => "noninteractive" }
    def debian_root? = Process.euid.zero? && program?("apt-get")

    def program?(name)
      return Dir.glob(name).any? if name.start_with?("/")

      [*ENV.fetch("PATH", "").split(File::PATH_SEPARATOR), "/usr/sbin"].any? { |dir| File.executable?(File.join(dir, name)) }
    end

    def writable?(dir)
      dir = File.dirname(dir) until File.exist?(dir)
      File.writable?(dir)
    end

    def run(env, *command, **options)
      unbundled { system(env, *command, chdir: directory(env), in: File::NULL, **options) }
    end

    def directory(env) = env.key?("BUNDLE_GEMFILE") ? File.dirname(env["BUNDLE_GEMFILE"]) : @root
    def unbundled(&block) = Bundler.with_unbundled_env(&block)

    def stop(message)
      warn message
      exit 1
    end
  end
end
