# frozen_string_literal: true

require "open3"
require "tmpdir"

module Castellan
  # Runs the code blocks of a Markdown page that are marked as runnable.
  #
  #   <!-- run -->                    the next ```ruby or ```sh block must exit with status 0
  #   <!-- run needs: postgres -->    the same, but only if this server is installed (keys of TestServers::BINARIES)
  #   <!-- run continues -->          appends the next block to the program of the previous runnable block
  #   <!-- output -->                 the next block is the exact output of the previous runnable block
  #   <!-- file: config/a.rb -->      the next block is a file of an application (see {.files})
  #
  # A block runs as example.rb or example.sh in a new directory, which is then deleted. The directory has
  # links to the checkout and uses this bundle, so `bundle exec castellan` and `examples/users` work. Blocks
  # that need a server of the reader are not marked.
  class Snippets
    Snippet = Struct.new(:language, :code, :line, :needs, :output, keyword_init: true)
    FILE = /^<!--\s*file:\s*(?<path>\S+)\s*-->\n+```\w*\n(?<code>.*?)^```$/m
    BLOCK = /^<!--\s*(?<mark>run|output)(?<words>[^>]*?)\s*-->\n+```(?<language>\w*)\n(?<code>.*?)^```$/m
    COMMANDS = { "ruby" => ["ruby", "-w", "-Ilib", "example.rb"], "sh" => ["bash", "-euo", "pipefail", "example.sh"] }.freeze
    private_constant :FILE, :BLOCK, :COMMANDS

    # @param markdown [String]
    # @return [Array<Snippet>] in the order of the page
    def self.parse(markdown)
      markdown.enum_for(:scan, BLOCK).map { Regexp.last_match }.each_with_object([]) do |match, snippets|
        next snippets.last.output = match[:code] if match[:mark] == "output"

        snippets << snippet(match, snippets.last)
      end
    end

    # @param markdown [String]
    # @return [Hash{String => String}] contents by path
    def self.files(markdown) = markdown.scan(FILE).to_h

    def self.snippet(match, previous)
      line = match.pre_match.count("\n") + 1
      raise ArgumentError, "line #{line}: a runnable block is ```ruby or ```sh" unless COMMANDS.key?(match[:language])

      code = match[:words].include?("continues") ? previous.code + match[:code] : match[:code]
      needs = match[:words][/needs:\s*(.+)/, 1].to_s.split(/[,\s]+/).map(&:to_sym)
      Snippet.new(language: match[:language], code: code, line: line, needs: needs)
    end
    private_class_method :snippet

    # @param snippet [Snippet]
    # @param root [String] the checkout
    # @return [Array(String, String, Boolean)] standard output, standard error, and whether the status is 0
    def self.run(snippet, root:)
      Dir.mktmpdir do |dir|
        Dir.each_child(root) { |name| File.symlink(File.join(root, name), File.join(dir, name)) unless name == ".git" }
        command = COMMANDS.fetch(snippet.language)
        File.write(File.join(dir, command.last), snippet.code)
        env = { "BUNDLE_GEMFILE" => File.join(root, "Gemfile") }
        output, errors, status = Open3.capture3(env, *command, chdir: dir, stdin_data: "")
        [output, errors, status.success?]
      end
    end
  end
end
