# frozen_string_literal: true

require_relative "lib/castellan/version"

Gem::Specification.new do |spec|
  spec.name = "castellan"
  spec.version = Castellan::VERSION
  spec.authors = ["The Castellan developers"]
  spec.summary = "Finds why a JSON endpoint is slow, makes it fast in layers, and proves each step."
  spec.description = <<~TEXT
    Castellan is for people who run a JSON API in Ruby and find one of its endpoints woefully slow. It finds repeated
    queries down to the line, renders JSON:API and nested JSON straight from database rows without model instances,
    keeps documents behind HTTP validators, and measures every step.
  TEXT
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.homepage = "https://github.com/castellan-rb/castellan"
  spec.metadata = {
    "homepage_uri" => spec.homepage,
    "source_code_uri" => spec.homepage,
    "changelog_uri" => "#{spec.homepage}/blob/main/CHANGELOG.md",
    "documentation_uri" => "#{spec.homepage}/tree/main/docs",
    "rubygems_mfa_required" => "true"
  }

  built = %r{\.(so|o|bundle|log)\z|Makefile\z|mkmf\.log\z|\Adocs/screenshots/}
  spec.files = Dir.chdir(__dir__) do
    Dir["{lib,exe,ext,vendor,docs}/**/*", "README.md", "CHANGELOG.md", "LICENSE"]
      .select { |path| File.file?(path) && !path.match?(built) }
  end
  spec.bindir = "exe"
  spec.executables = ["castellan"]
  spec.extensions = ["ext/castellan/extconf.rb"]
end
