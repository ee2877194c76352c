# frozen_string_literal: true

require "rails/railtie"
require_relative "railtie/configuration"

module Castellan
  # Wires Castellan into a Rails application by Rails' public configuration; {Configuration} has the keys of `config.castellan`.
  #
  #   config.castellan.detection = config.castellan.profile = false   # in config/environments/development.rb: no detector, no profiler
  #
  # In development, the detector ({Detect::Middleware}) and the profiler ({Profile::Middleware}, outside of all others, for localhost) are
  # on. Elsewhere each is on where its key is set. By default profiles are in tmp/castellan, which the workers share; parameters of
  # `config.filter_parameters` are not kept; links are signed with a key of the application's own. Unused eager loads, found over many
  # requests, are on the page of profiles, too. With CASTELLAN=off all of this is off.
  #
  # Where code is loaded at boot (`config.eager_load`), every resource is checked against the database then, so that a wrong name is found
  # before a request; a database that does not answer yet (an image that is being built) is logged and no error.
  #
  # A {BadRequest} that no controller rescues has status 400, as Rails' own has; `error.to_h` needs a `rescue_from`.
  # `render json: document` and `stale?(**document.validators)` need no Railtie. Rails builds a `Castellan.app` in routes.rb again
  # whenever it reloads code.
  class Railtie < Rails::Railtie
    config.castellan = Configuration.new

    BAD_REQUESTS = %w[Castellan::BadRequest Castellan::Serializer::Error Castellan::Serializer::UnsupportedIncludeError
                      JSONAPI::Serializer::Error JSONAPI::Serializer::UnsupportedIncludeError].freeze
    MEDIA_TYPE = "application/vnd.api+json"
    SERVERS = %w[puma rackup falcon unicorn pitchfork thin].freeze
    private_constant :BAD_REQUESTS, :MEDIA_TYPE, :SERVERS

    class << self
      # @param app [Rails::Application]
      # @return [Hash, nil] options for {Profile::Middleware}; nil: off. Outside of development nobody could see profiles without
      #   `secret:` or `authorize:`, so that is off, too.
      def profile_options(app)
        options = enabled(app.config.castellan.profile) or return
        return unless Rails.env.development? || options[:secret] || options[:authorize] || ENV["CASTELLAN_SECRET"]

        { environment: Rails.env.to_s, filter: app.config.filter_parameters, logger: Rails.logger, announce: method(:announce),
          mount: app.config.relative_url_root.to_s.chomp("/"), evidence: evidence(app),
          **(options.key?(:store) ? {} : own_store), **(Rails.env.development? ? own_secret(app) : {}), **options }
      end

      # @param app [Rails::Application]
      # @return [Array(Class, Hash), nil] a middleware and its options; nil: off
      def detection(app)
        options = enabled(app.config.castellan.detection) or return
        return [Detect::Middleware, { logger: Rails.logger, **options, evidence: evidence(app) }] if Rails.env.development?

        [detector(app).middleware, {}]
      end

      # @param app [Rails::Application]
      # @return [Hash, nil] options for {Verify::Middleware}; nil: off
      def verification(app) = (app.config.castellan.verify || nil unless Castellan.off?)

      # @param app [Rails::Application]
      # @return [Detect::Evidence::Sampled, nil] what the detector fills and the page of profiles shows
      def evidence(app)
        options = enabled(app.config.castellan.detection) or return
        return detector(app).evidence unless Rails.env.development?

        share = options.fetch(:evidence, Detect::Middleware::EVIDENCE)
        @evidence ||= share.is_a?(Detect::Evidence::Sampled) ? share : Detect::Evidence::Sampled.new(share)
      end

      # Keeps documents in `config.castellan.cache_store`.
      # @param app [Rails::Application]
      def keep(app)
        store = app.config.castellan.cache_store or return
        source = ActiveRecord::Base if defined?(ActiveRecord::Base)
        source ||= Sequel::DATABASES.first if defined?(Sequel::DATABASES)
        Castellan.keep(store: store, versions: Versions::ExactVersions.new(source)) if source
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

      # @return [Hash, nil]
      def enabled(options)
        return if options == false || Castellan.off?

        options.nil? ? ({} if Rails.env.development?) : options
      end

      # @return [Detect::Production]
      def detector(app)
        settings = app.config.castellan
        settings.detector ||= begin
          report = settings.detection[:report]
          Detect.production(**settings.detection.except(:report), &report).log_to(Rails.logger)
        end
      end

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
      Railtie.keep(app)
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

    initializer "castellan.detect", after: :load_config_initializers do |app|
      middleware, options = Railtie.detection(app)
      if middleware
        Castellan::CallSite.root = Rails.root.to_s
        app.config.middleware.use(middleware, **options)
      end
    end

    initializer "castellan.verify", after: :load_config_initializers do |app|
      options = Railtie.verification(app)
      app.config.middleware.use(Castellan::Verify::Middleware, **options) if options
    end
  end
end
