# frozen_string_literal: true

require "rack"

module Castellan
  module Doctor
    # Boots a Rack application from its file in an environment.
    #
    #   application = Application.boot("config.ru", environment: "production")
    #   application.call(env)          # => Rack response
    #   application.reloading?         # => false
    #
    # For a Ruby file, the application is the constant named after the file, else the only subclass of
    # Sinatra::Base, Roda or Hanami::API that the file defines, else Sinatra::Application (classic style).
    class Application
      VARIABLES = %w[RAILS_ENV RACK_ENV APP_ENV].freeze
      BASES = %w[Sinatra::Base Roda Hanami::API].freeze
      private_constant :VARIABLES, :BASES

      # @return [String] the file that was booted
      # @return [String] the name of the environment
      # @return [#call] the Rack application
      attr_reader :path, :environment, :app

      # @param path [String, nil] by default config.ru, else app.rb, in the working directory
      # @param environment [String] the value for RAILS_ENV, RACK_ENV and APP_ENV
      # @return [Application]
      # @raise [Error] if the file is missing or raises; the message includes the application's error
      def self.boot(path = nil, environment: "production")
        path ||= %w[config.ru app.rb].find { |file| File.file?(file) } or
          raise Error, "there is no config.ru and no app.rb in #{Dir.pwd}; name the file, such as path/to/config.ru"
        raise Error, "there is no file #{path}" unless File.file?(path)

        new(path, environment).tap(&:boot)
      end

      def initialize(path, environment)
        @path = path
        @environment = environment
      end

      def boot
        VARIABLES.each { |name| ENV[name] = environment }
        @app = path.end_with?(".ru") ? rackup : ruby
        self
      rescue Error
        raise
      rescue ScriptError, StandardError, SystemExit => error
        raise Error, boot_failure(error)
      end

      # @param env [Hash] Rack environment
      # @return [Array] Rack response
      def call(env) = @app.call(env)

      # @return [Boolean] whether code reloads between requests; measurements are then not comparable
      def reloading?
        return true if defined?(Sinatra::Reloader) || defined?(Rack::Unreloader) || (defined?(Rack::Reloader) && !Rack.autoload?(:Reloader))

        rails? && !Rails.application.config.cache_classes
      end

      def rails? = !!defined?(Rails) && Rails.respond_to?(:application) && !Rails.application.nil?

      # @return [String] "Rails 7.2.4 in production, from config.ru"
      def to_s
        framework = if rails? then "Rails #{Rails.version}"
                    elsif defined?(Sinatra) then "Sinatra #{Sinatra::VERSION}"
                    elsif defined?(Roda) then "Roda #{Roda::RodaVersion}"
                    else "Rack #{Rack.release}"
                    end
        "#{framework} in #{environment}, from #{path}"
      end

      private

      # Rack 2 returns options as well.
      def rackup = Array(Rack::Builder.parse_file(path)).first

      def ruby
        before = subclasses
        load File.expand_path(path)
        named_like_the_file || only(subclasses - before) || classic ||
          raise(Error, "#{path} defines no Rack application: define one as #{camelized}, or name a config.ru")
      end

      def named_like_the_file
        constant = Object.const_get(camelized) if Object.const_defined?(camelized)
        constant if constant.respond_to?(:call)
      end

      def camelized = File.basename(path, ".rb").split(/[_-]/).map(&:capitalize).join

      def subclasses
        BASES.select { |name| Object.const_defined?(name) }.flat_map { |name| Object.const_get(name).subclasses }
             .reject { |candidate| candidate.name&.start_with?("Sinatra::") }
      end

      def only(found)
        raise Error, "#{path} defines several applications (#{found.join(", ")}): name one in a config.ru" if found.size > 1

        found.first
      end

      def classic
        return unless defined?(Sinatra::Application) && Sinatra::Application.routes.any?

        Sinatra::Application.set(:run, false)
        Sinatra::Application
      end

      def boot_failure(error)
        "the application does not boot: #{error.is_a?(SystemExit) ? ended(error) : Refusal.error(error)}\n" \
          "It was booted from #{path} in #{Dir.pwd} with #{VARIABLES.map { |name| "#{name}=#{environment}" }.join(" ")}; " \
          "other variables are those of your shell.#{advice(error)}"
      end

      def ended(error) = "it ended by itself, with exit status #{error.status}"

      def advice(error)
        case error.message
        when /secret_key_base/ then "\nFor a measurement a made-up one will do: set SECRET_KEY_BASE_DUMMY=1 (Rails 7.1 and later)."
        when /cannot load such file -- (\S+)/ then "\nIs its gem in the Gemfile, outside of the groups that this environment leaves out?"
        else "\n--env development boots another environment." unless environment == "development"
        end
      end
    end
  end
end
