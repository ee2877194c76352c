# frozen_string_literal: true

require "optparse"

module Castellan
  module CLI
    # Runs `castellan types`: prints the types of an application's resources in TypeScript.
    #
    #   Castellan::CLI::TypesCommand.new(%w[config.ru]).call # => 0
    #
    # Exit status 0; 1 if the application does not boot or has no resources; 2 for wrong arguments.
    class TypesCommand
      # @return [String]
      def self.summary = "prints the types of an application's resources in TypeScript"

      def initialize(argv, out: $stdout, err: $stderr)
        @argv = argv
        @out = out
        @err = err
        @environment = "development"
      end

      # @return [Integer] exit status
      def call
        files = parser.parse(@argv)
        return 0 if @help
        return wrong("name one file, got #{files.join(" ")}\n\n#{parser}", 2) if files.size > 1

        Doctor::Application.boot(files.first, environment: @environment)
        Rails.application.eager_load! if defined?(Rails) && Rails.respond_to?(:application) && Rails.application
        resources = Resource.subclasses.flat_map { |resource| [resource, *resource.descendants] } # the first subclass loads its methods
        definitions = resources.select(&:name).sort_by(&:name).map(&:definition)
        return wrong("the application has no resources", 1) if definitions.empty?

        @out.puts TypeScript.new(definitions).to_s
        0
      rescue OptionParser::ParseError => error
        wrong("#{error.message}; castellan types --help lists the options", 2)
      rescue Doctor::Error, ConfigurationError => error
        wrong(error.message, 1)
      end

      private

      def parser
        OptionParser.new("Usage: castellan types [config.ru | app.rb] > app/javascript/api.d.ts") do |options|
          options.on("--env NAME", "the environment to boot in (development)") { |name| @environment = name }
          options.on("-h", "--help", "print this") { @help = @out.puts(options) || true }
        end
      end

      def wrong(message, status)
        @err.puts "castellan types: #{message}"
        status
      end
    end
  end
end
