# frozen_string_literal: true

require "fileutils"
require "optparse"

module Castellan
  module CLI
    # Runs `castellan new api NAME`: writes a JSON:API application of Rack and Sequel into a new folder.
    #
    #   Castellan::CLI::NewCommand.new(%w[api library]).call # => 0
    #
    # Exit status 0; 1 if the folder exists; 2 for wrong arguments. Existing files are never changed.
    class NewCommand
      TEMPLATES = File.join(__dir__, "new_command")
      NAME = /\A[a-z][a-z0-9_-]{0,62}\z/
      USAGE = "Usage: castellan new api NAME"
      private_constant :TEMPLATES, :NAME, :USAGE

      # @return [String]
      def self.summary = "writes a new JSON:API application: castellan new api NAME"

      def initialize(argv, out: $stdout, err: $stderr)
        @argv = argv
        @out = out
        @err = err
      end

      # @return [Integer] exit status
      def call
        kind, name, *rest = parser.parse(@argv)
        return 0 if @help
        return wrong("write: castellan new api NAME", 2) unless kind == "api" && name && rest.empty?
        return wrong("the name #{name.inspect} must be lower-case letters, digits, - and _, such as library", 2) unless NAME.match?(name)
        return wrong("#{name} exists already", 1) if File.exist?(name)

        write(name)
        @out.puts "", "cd #{name} && bundle install && bundle exec rake migrate test && bundle exec puma"
        0
      rescue OptionParser::ParseError => error
        wrong("#{error.message}; #{USAGE}", 2)
      end

      private

      def parser
        OptionParser.new(USAGE) { |options| options.on("-h", "--help", "print this") { @help = @out.puts(options) || true } }
      end

      def wrong(message, status)
        @err.puts "castellan new: #{message}"
        status
      end

      def write(name)
        Dir.glob("**/*.tt", base: TEMPLATES).sort.each do |template|
          path = File.join(name, template.delete_suffix(".tt").sub(/\Agitignore/, ".gitignore"))
          FileUtils.mkdir_p(File.dirname(path))
          File.write(path, File.read(File.join(TEMPLATES, template)).gsub("<name>", name))
          @out.puts "create #{path}"
        end
      end
    end
  end
end
