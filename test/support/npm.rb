# frozen_string_literal: true

require "fileutils"
require "open3"
require "tmpdir"

module Castellan
  # Runs JavaScript programs with packages of the npm registry.
  #
  #   Castellan::Npm.available?                                              # => true if node and npm are installed
  #   Castellan::Npm.run("kitsu@11.1.0", script: "client.mjs", arguments: [url])   # => [output, passed]
  #
  # Installs packages once per process, without their install scripts, in a directory that is deleted at exit.
  module Npm
    @directories = {}

    # @return [Boolean]
    def self.available?
      %w[node npm].all? { |name| ENV["PATH"].split(File::PATH_SEPARATOR).any? { |path| File.executable?(File.join(path, name)) } }
    end

    # @param packages [Array<String>] names with exact versions
    # @param script [String] an ES module that imports the packages by name
    # @return [Array(String, Boolean)] standard output and error, and whether the exit status is 0
    def self.run(*packages, script:, arguments: [])
      directory = install(packages)
      FileUtils.cp(script, directory)
      output, status = Open3.capture2e("node", File.join(directory, File.basename(script)), *arguments, chdir: directory, stdin_data: "")
      [output, status.success?]
    end

    # @return [String] a directory with `node_modules`
    # @raise [RuntimeError] if npm fails
    def self.install(packages)
      @directories[packages.sort] ||= Dir.mktmpdir("castellan-npm-").tap do |directory|
        at_exit { FileUtils.rm_rf(directory) }
        output, status = Open3.capture2e("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", *packages,
                                         chdir: directory, stdin_data: "")
        raise "npm install #{packages.join(" ")} failed:\n#{output}" unless status.success?
      end
    end
    private_class_method :install
  end
end
