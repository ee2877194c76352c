# frozen_string_literal: true

require "bundler"
require "fileutils"
require "rbconfig"

module Castellan
  # Runs tests on the newest supported Rails, which needs a newer Ruby than Debian stable has.
  #
  #   NewestRuby.new.run(%w[test/contract_test.rb], log: "newest.log")   # => true if they passed
  #
  # If this Ruby is new enough, the tests run here. Otherwise, as root on Debian, they run in a chroot of a
  # newer release with Ruby, a compiler and PostgreSQL, which debootstrap creates once.
  class NewestRuby
    GEMFILE = "gemfiles/rails_8_1.gemfile"
    MINIMUM = Gem::Version.new("3.2")
    RELEASE = "trixie"
    PACKAGES = %w[ruby ruby-dev bundler build-essential git ca-certificates libyaml-dev pkg-config postgresql redis-server memcached
                  sqlite3].freeze
    ROOT = File.expand_path("../..", __dir__)
    CHROOT = "/var/cache/castellan/#{RELEASE}".freeze
    READY = File.join(CHROOT, ".ready")
    private_constant :READY

    def initialize(out: $stdout)
      @out = out
    end

    # @return [Boolean] whether this machine can run the tests
    def available? = here? || (Process.euid.zero? && File.executable?("/usr/bin/apt-get"))

    # Creates the chroot if this Ruby is too old.
    # @return [Boolean] whether tests can run
    def install = here? || prepare

    # @param files [Array<String>] test files, relative to the checkout
    # @param log [String] the file for the output
    # @return [Boolean] whether all tests passed
    def run(files, log:)
      return bundle_and_test({ "BUNDLE_GEMFILE" => File.join(ROOT, GEMFILE) }, ["bash", "-euc", script(files)], ROOT, log) if here?

      command = ["chroot", CHROOT, "bash", "-euc", "cd /castellan; #{script(files)}"]
      copy && with_proc { bundle_and_test(chroot_env, command, "/", log) }
    end

    private

    def here? = Gem::Version.new(RUBY_VERSION) >= MINIMUM

    # Deletes a chroot whose creation was interrupted.
    def prepare
      return true if File.exist?(READY)

      @out.puts "Installing Ruby of Debian #{RELEASE} into #{CHROOT} …"
      system("umount", "--lazy", File.join(CHROOT, "proc"), err: File::NULL)
      FileUtils.rm_rf(CHROOT)
      FileUtils.mkdir_p(File.dirname(CHROOT))
      made = apt("update") && apt("install", "-y", "--no-install-recommends", "debootstrap") &&
             system("debootstrap", "--variant=minbase", "--include=#{PACKAGES.join(",")}", RELEASE, CHROOT, mirror, out: File::NULL)
      FileUtils.touch(READY) if made
      made
    end

    def apt(*arguments) = system({ "DEBIAN_FRONTEND" => "noninteractive" }, "apt-get", "-qq", *arguments, out: File::NULL)

    # The mirror that apt uses on this machine.
    def mirror = IO.popen(["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"], &:read).lines(chomp: true).first

    # Copies the files that git tracks or would track, because extensions that were compiled here do not load
    # there.
    def copy
      target = File.join(CHROOT, "castellan")
      FileUtils.rm_rf(target)
      FileUtils.mkdir_p(target)
      %w[/etc/resolv.conf /etc/ssl/certs/ca-certificates.crt].each do |file|
        FileUtils.cp(file, File.join(CHROOT, file)) if File.exist?(file)
      end
      system("(git ls-files -z; git ls-files -oz --exclude-standard) | xargs -0 cp --parents -t #{target}", chdir: ROOT)
    end

    def with_proc
      proc = File.join(CHROOT, "proc")
      mounted = system("mount", "--bind", "/proc", proc)
      yield
    ensure
      system("umount", "--lazy", proc) if mounted
    end

    def chroot_env
      { "BUNDLE_GEMFILE" => "/castellan/#{GEMFILE}", "GEM_HOME" => "/var/lib/castellan-gems", "HOME" => "/root", "LANG" => "C.UTF-8",
        "PATH" => "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR" => "/tmp" }
    end

    def bundle_and_test(env, command, directory, log)
      system(Bundler.unbundled_env.merge(env), *command, chdir: directory, in: File::NULL, %i[out err] => log, unsetenv_others: true)
    end

    def script(files)
      "bundle check >/dev/null 2>&1 || bundle install --quiet; bundle exec rake --silent compile; " \
        "bundle exec ruby -w -Ilib -Itest -e 'ARGV.each { |file| require File.expand_path(file) }' -- #{files.join(" ")}"
    end
  end
end
