# frozen_string_literal: true

require "rails/railtie"
require "active_support/ordered_options"

module Castellan
  # Wires Castellan into a Rails application, all by Rails' public configuration.
  #
  #   config.castellan.detection = false   # in config/environments/development.rb: do not watch for repeated queries
  #   config.castellan.detection = { json_lines: "log/findings.jsonl" }   # there, too: options of the middleware
  #   config.castellan.detection = Castellan::Detect.production(sample: 0.1)   # in production.rb: watch a tenth of the requests
  #   config.castellan.profile = false     # there, too: no profiles and no page at /castellan
  #   config.castellan.profile = { secret: ENV.fetch("PROFILE_SECRET") }   # in production.rb: for who has a signed link
  #
  # A link for an hour there: `puts "/castellan?castellan_token=#{Castellan::Profile::Token.new(ENV.fetch("PROFILE_SECRET")).sign(3_600)}"`.
  #
  # Requests are profiled ({Profile::Middleware}, outside of all others) in development for who is on this machine, elsewhere only where
  # `profile` is set, to options of the middleware. By default results are in tmp/castellan, which the workers share; parameters of
  # `config.filter_parameters` are not kept; links are signed with a key of the application's own.
  #
  # In development, requests are watched for repeated queries ({Detect::Middleware}); elsewhere only by a {Detect::Production} that
  # is set, and can be asked there: `puts Rails.configuration.castellan.detection`. What either has seen over many requests (eager
  # loads that nobody reads) stands on the page of profiles, too. Where code is loaded at boot
  # (`config.eager_load`), every resource is held against the database then, so that a wrong name is found before a request; a
  # database that does not answer yet (an image that is being built) is logged and no error. With CASTELLAN=off neither is done.
  #
  # A {BadRequest} that no controller rescues is answered with status 400, as Rails' own is; `error.to_h` needs a `rescue_from`.
  # `render json: document` and `stale?(**document.validators)` need nothing of this. A `Castellan.app` holds the classes that it
  # was given: in routes.rb it is built anew only when Rails loads the routes again.
  class Railtie < Rails::Railtie
    config.castellan = ActiveSupport::OrderedOptions.new
    config.castellan.detection = true
    config.castellan.profile = nil # nil is: in development
    config.castellan.revision = nil # nil is: that of the deployment, see Keeper::Revision

    BAD_REQUESTS = %w[Castellan::BadRequest Castellan::Serializer::Error Castellan::Serializer::UnsupportedIncludeError
                      JSONAPI::Serializer::Error JSONAPI::Serializer::UnsupportedIncludeError].freeze
    MEDIA_TYPE = "application/vnd.api+json"
    SERVERS = %w[puma rackup falcon unicorn pitchfork thin].freeze
    private_constant :BAD_REQUESTS, :MEDIA_TYPE, :SERVERS

    class << self
      # @param app [Rails::Application]
      # @return [Hash, nil] of options for {Profile::Middleware}, nil when there shall be none
      def profile_options(app)
        asked = app.config.castellan.profile
        return if asked == false || Castellan.off? || (asked.nil? && !Rails.env.development?)

        asked = {} unless asked.is_a?(Hash)
        { environment: Rails.env.to_s, filter: app.config.filter_parameters, logger: Rails.logger, announce: method(:announce),
          mount: app.config.relative_url_root.to_s.chomp("/"), evidence: evidence(app),
          **(asked.key?(:store) ? {} : own_store), **(asked.empty? ? own_secret(app) : asked) }
      end

      # @param app [Rails::Application]
      # @return [Array(Class, Hash), nil] a middleware and its options, nil when there shall be none
      def detection(app)
        asked = app.config.castellan.detection
        return if !asked || Castellan.off?
        return [asked.log_to(Rails.logger).middleware, {}] if asked.respond_to?(:middleware)
        return unless Rails.env.development?

        [Detect::Middleware, { logger: Rails.logger, **(asked.is_a?(Hash) ? asked : {}), evidence: evidence(app) }]
      end

      # @param app [Rails::Application]
      # @return [Detect::Evidence::Sampled, nil] what the detector fills and the page of profiles shows, nil when nothing is watched
      def evidence(app)
        asked = app.config.castellan.detection
        return if !asked || Castellan.off?
        return asked.evidence if asked.respond_to?(:evidence)
        return unless Rails.env.development?

        share = asked.is_a?(Hash) ? asked.fetch(:evidence, Detect::Middleware::EVIDENCE) : Detect::Middleware::EVIDENCE
        @evidence ||= share.is_a?(Detect::Evidence::Sampled) ? share : Detect::Evidence::Sampled.new(share)
      end

      # @param text [String] the signed link: where a server boots for whoever watches, else for the log
      def announce(text)
        serving = defined?(Rails::Server) || SERVERS.include?(File.basename($PROGRAM_NAME))
        serving ? warn(text) : Rails.logger&.info(text)
      end

      # Checks every resource that is loaded; nothing is loaded for it.
      # @raise [DeclarationError] naming the file, the line and the nearest right name
      def check
        Castellan.check! unless Castellan.autoload?(:Resource)
      rescue *database_errors => error
        Rails.logger&.warn("castellan: resources are checked with their first document, because the database does not answer: " \
                           "#{error.message}")
      end

      # Makes Rails read and write JSON:API's media type as JSON: parameters of requests, and `parsed_body` in integration tests. What
      # the application has registered itself stays.
      # @return [Symbol] the type's name in Rails
      def register_media_type
        type = Mime::Type.lookup(MEDIA_TYPE)
        type = Mime::Type.register(MEDIA_TYPE, :jsonapi) unless type&.symbol
        parsers = ActionDispatch::Request.parameter_parsers
        ActionDispatch::Request.parameter_parsers = { type.symbol => parsers[:json], **parsers }
        type.symbol
      end

      # @param tests [Class] of Rails' integration tests
      def register_encoder(tests)
        name = register_media_type
        json = ActionDispatch::RequestEncoder.encoder(:json)
        tests.register_encoder(name, param_encoder: :to_json.to_proc, response_parser: json.response_parser)
      end

      private

      # An application boots where its directory cannot be written, or is everybody's (a mounted volume): a process has its own then.
      def own_store
        { store: Store::DirectoryStore.new(Rails.root.join("tmp/castellan")) }
      rescue ConfigurationError => error
        Rails.logger&.warn("castellan: each process keeps the profiles that it took, and no other shows them: #{error.message}")
        {}
      end

      # The same in every process, and worth nothing elsewhere.
      def own_secret(app) = { secret: app.key_generator.generate_key("castellan profile").unpack1("H*") }

      def database_errors
        [(ActiveRecord::ActiveRecordError if defined?(ActiveRecord::Base)), (Sequel::Error if defined?(Sequel::Database))].compact
      end
    end

    # Before the application's own initializers, which may call `Castellan.keep`.
    initializer "castellan.revision", before: :load_config_initializers do |app|
      Castellan::CallSite.root = Rails.root.to_s
      Castellan.revision = -> { app.config.castellan.revision }
      app.reloader.before_class_unload { Castellan.keeper&.renew_revision }
    end

    # Last, because in an application that is initialised already the block runs at once.
    config.after_initialize do |app|
      Railtie.check if app.config.eager_load && !Castellan.off?
    end

    initializer "castellan.versions" do
      ActiveSupport.on_load(:active_record) { Castellan::Versions::ActiveRecordSchema.extend_active_record }
    end

    # Not where there is no Action Dispatch, and after what the application says itself.
    initializer "castellan.bad_request", before: "action_dispatch.configure" do |app|
      if app.config.respond_to?(:action_dispatch)
        answered = app.config.action_dispatch.rescue_responses
        BAD_REQUESTS.each { |name| answered[name] ||= :bad_request }
      end
    end

    # After the application's own initializers, which may register the type under another name.
    initializer "castellan.media_type", after: :load_config_initializers do
      ActiveSupport.on_load(:action_dispatch_request) { Railtie.register_media_type }
      ActiveSupport.on_load(:action_dispatch_integration_test) { Railtie.register_encoder(self) }
    end

    # After the application's own initializers, which say what parameters are secret.
    initializer "castellan.profile", after: :load_config_initializers do |app|
      if (options = Railtie.profile_options(app))
        Castellan::CallSite.root = Rails.root.to_s
        app.config.middleware.unshift Castellan::Profile::Middleware, **options
      end
    end

    initializer "castellan.detect" do |app|
      middleware, options = Railtie.detection(app)
      if middleware
        Castellan::CallSite.root = Rails.root.to_s
        app.config.middleware.use(middleware, **options)
      end
    end
  end
end
