# frozen_string_literal: true

require "fileutils"

module Castellan
  module CLI
    # Runs `castellan new api NAME`: writes a JSON:API application with Rack and Sequel into a new folder.
    #
    #   Castellan::CLI::NewCommand.new(%w[api library]).call # => 0
    #
    # The exit status is 0; 1 if the folder exists; 2 for wrong arguments. Never changes existing files.
    class NewCommand < Command
      TEMPLATES = File.join(__dir__, "new_command")
      NAME = /\A[a-z][a-z0-9_-]{0,62}\z/
      USAGE = "castellan new api NAME"
      private_constant :TEMPLATES, :NAME

      def self.summary = "writes a new JSON:API application with Rack and Sequel"

      private

      def run(kind = nil, name = nil, *rest)
        raise WrongArguments, "write: castellan new api NAME" unless kind == "api" && name && rest.empty?
        unless NAME.match?(name)
          raise WrongArguments, "the name #{name.inspect} must be lower-case letters, digits, - and _, such as library"
        end
        raise Castellan::Error, "#{name} exists already: write another name" if File.exist?(name)

        write(name)
        @out.puts "", "cd #{name} && bundle install && bundle exec rake migrate test && bundle exec puma"
        0
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
