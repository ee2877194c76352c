# frozen_string_literal: true

module Castellan
  module CLI
    # Runs `castellan types`: prints TypeScript types for the resources of an application.
    #
    #   Castellan::CLI::TypesCommand.new(%w[config.ru]).call # => 0
    #
    # The exit status is 0; 1 if the application does not boot or has no resources; 2 for wrong arguments.
    class TypesCommand < Command
      USAGE = "castellan types [config.ru | app.rb] [--env development] > app/javascript/api.d.ts"

      def self.summary = "prints the types of an application's resources in TypeScript"

      private

      def options(parser)
        @environment = "development"
        parser.on("--env NAME", "the environment to boot in (development)") { |name| @environment = name }
      end

      def run(file = nil, *others)
        raise WrongArguments, "name one file, got #{[file, *others].join(" ")}" if others.any?

        load_doctor
        redirected { print_types(file) }
        0
      end

      def print_types(file)
        Rails.application.eager_load! if Doctor::Application.boot(file, environment: @environment).rails?
        resources = Resource.subclasses.flat_map { |resource| [resource, *resource.descendants] } # loaded with the first subclass
        definitions = resources.select(&:name).sort_by(&:name).map(&:definition).reject { |definition| base?(definition) }
        raise Castellan::Error, "the application has no resources" if definitions.empty?

        @out.puts TypeScript.new(definitions).to_s
      end

      # A class such as ApiResource, from which others inherit.
      def base?(definition) = definition.model.nil? && definition.members.empty? && !definition.several_types?
    end
  end
end
