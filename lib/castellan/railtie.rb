# frozen_string_literal: true

require "rails/railtie"
require_relative "railtie/configuration"

module Castellan
  # Adds Castellan to a Rails application. {Configuration} documents the keys of `config.castellan`.
  #
  #   config.castellan.detection = config.castellan.profile = false   # in development.rb
  #
  # In development, the detector ({Detect::Middleware}) and the profiler ({Profile::Middleware}, the outermost
  # middleware, open to localhost) are on. In other environments, each is on if its key is set. By default all
  # processes share the profiles in tmp/castellan; values of `config.filter_parameters` are left out, and
  # links are signed with a key that is derived from the application's secret. The profiler's page also lists
  # unused eager loads. `CASTELLAN=off` disables everything.
  #
  # With `config.eager_load`, booting checks all resources against the database, so that wrong names fail
  # early. If the database is unavailable (e.g. while an image is built), it only logs this.
  #
  # A {BadRequest} that is not rescued gives status 400; {Controller} renders it as an error document.
  # `render json: document` and `stale?(**document.validators)` do not need the Railtie. Rails rebuilds a
  # `Castellan.app` in routes.rb when code reloads.
  class Railtie < Rails::Railtie
    config.castellan = Configuration.new

    BAD_REQUESTS = %w[Castellan::BadRequest Castellan::Serializer::Error Castellan::Serializer::UnsupportedIncludeError
                      JSONAPI::Serializer::Error JSONAPI::Serializer::UnsupportedIncludeError].freeze
    MEDIA_TYPE = "application/vnd.api+json"
    SERVERS = %w[puma rackup falcon unicorn pitchfork thin].freeze
    private_constant :BAD_REQUESTS, :MEDIA_TYPE, :SERVERS

    class << self
      # @param app [Rails::Application]
      # @return [Hash, nil] options for {Profile::Middleware}; nil if off. Outside of development it is also
      #   off without `secret:` and `authorize:`, because nobody could see the profiles
      def profile_options(app)
        options = enabled(app.config.castellan.profile) or return
        return unless Rails.env.development? || options[:secret] || options[:authorize] || ENV["CASTELLAN_SECRET"]

        { environment: Rails.env.to_s, filter: app.config.filter_parameters, logger: Rails.logger, announce: method(:announce),
          mount: app.config.relative_url_root.to_s.chomp("/"), evidence: evidence(app),
          **(options.key?(:store) ? {} : own_store), **(Rails.env.development? ? own_secret(app) : {}), **options }
      end

      # @param app [Rails::Application]
      # @return [Array(Class, Hash), nil] a middleware and its options; nil if off
      def detection(app)
        options = enabled(app.config.castellan.detection) or return
        return [Detect::Middleware, { logger: Rails.logger, **options, evidence: evidence(app) }] if Rails.env.development?

        [detector(app).middleware, {}]
      end

      # @param app [Rails::Application]
      # @return [Hash, nil] options for {Verify::Middleware}; nil if off
      def verification(app) = (app.config.castellan.verify || nil unless Castellan.off?)

      # @param app [Rails::Application]
      # @return [Detect::Evidence, nil] the unused eager loads that the detector finds and the profiler's page
      #   lists
      def evidence(app)
        options = enabled(app.config.castellan.detection) or return
        return detector(app).evidence unless Rails.env.development?

        share = options.fetch(:evidence, false)
        @evidence ||= share.is_a?(Detect::Evidence) ? share : Detect::Evidence.new(share)
      end

      # Caches documents in `config.castellan.cache_store`.
      # @param app [Rails::Application]
      def keep(app)
        store = app.config.castellan.cache_store or return
        source = ActiveRecord::Base if defined?(ActiveRecord::Base)
        source ||= Sequel::DATABASES.first if defined?(Sequel::DATABASES)
        return unless source

        Castellan.keep(store: store, versions: Versions::NotifiedVersions.new(source))
        version = PendingMigrations.last if app.config.eager_load && !Castellan.off?
        Castellan.keeper&.migrated_to(version) if version
      end

      # @param text [String] the signed link; printed to stderr if a server boots, else logged
      def announce(text)
        serving = defined?(Rails::Server) || SERVERS.include?(File.basename($PROGRAM_NAME))
        serving ? warn(text) : Rails.logger&.info(text)
      end

      # Checks the resources that are loaded, and loads none.
      # @raise [DeclarationError] with the file, the line and the nearest correct name
      def check
        return if Castellan::Resource.subclasses.empty?

        reason = PendingMigrations.reason
        reason ? checked_later(reason) : Castellan.check!
      rescue *database_errors => error
        checked_later("the database does not answer: #{error.message}")
      end

      # Makes Rails parse JSON:API's media type as JSON, in request parameters and in `parsed_body` of
      # integration tests. If the application has registered the type, its registration is used.
      # @return [Symbol] Rails' name for the type
      def register_media_type
        type = Mime::Type.lookup(MEDIA_TYPE)
        type = Mime::Type.register(MEDIA_TYPE, :jsonapi) unless type&.symbol
        parsers = ActionDispatch::Request.parameter_parsers
        ActionDispatch::Request.parameter_parsers = { type.symbol => parsers[:json], **parsers }
        type.symbol
      end

      # @param tests [Class] ActionDispatch::IntegrationTest
      def register_encoder(tests)
        name = register_media_type
        json = ActionDispatch::RequestEncoder.encoder(:json)
        tests.register_encoder(name, param_encoder: :to_json.to_proc, response_parser: json.response_parser)
      end

      private

      def checked_later(reason)
        Rails.logger&.warn("castellan: resources are checked with their first document, because #{reason}")
      end

      def enabled(options)
        return if options == false || Castellan.off?

        options.nil? ? ({} if Rails.env.development?) : options
      end

      def detector(app)
        settings = app.config.castellan
        settings.detector ||= begin
          report = settings.detection[:report]
          Detect.production(**settings.detection.except(:report), &report).log_to(Rails.logger)
        end
      end

      # If tmp/castellan cannot be created or is world-writable (a mounted volume), each process stores its
      # own profiles.
      def own_store
        { store: Store::DirectoryStore.new(Rails.root.join("tmp/castellan")) }
      rescue ConfigurationError => error
        Rails.logger&.warn("castellan: each process stores its own profiles, and only its own page shows them: #{error.message}")
        {}
      end

      # All processes of the application derive the same key.
      def own_secret(app) = { secret: app.key_generator.generate_key("castellan profile").unpack1("H*") }

      def database_errors
        [(ActiveRecord::ActiveRecordError if defined?(ActiveRecord::Base)), (Sequel::Error if defined?(Sequel::Database))].compact
      end
    end

    # Must run before the application's initializers, because they may call `Castellan.keep`.
    initializer "castellan.revision", before: :load_config_initializers do |app|
      Castellan::CallSite.root = Rails.root.to_s
      Castellan.revision = -> { app.config.castellan.revision }
      app.reloader.before_class_unload { Castellan.keeper&.renew_revision }
    end

    # Keep this last: if the application is already initialized, the block runs at once.
    config.after_initialize do |app|
      Railtie.keep(app)
      Railtie.check if app.config.eager_load && !Castellan.off?
    end

    initializer "castellan.versions" do
      ActiveSupport.on_load(:active_record) { Castellan::Versions::ActiveRecordSchema.extend_active_record }
    end

    # Does nothing without Action Dispatch. The application's own `rescue_responses` take precedence.
    initializer "castellan.bad_request", before: "action_dispatch.configure" do |app|
      if app.config.respond_to?(:action_dispatch)
        answered = app.config.action_dispatch.rescue_responses
        BAD_REQUESTS.each { |name| answered[name] ||= :bad_request }
      end
    end

    # Must run after the application's initializers, because they may register the type under another name.
    initializer "castellan.media_type", after: :load_config_initializers do
      ActiveSupport.on_load(:action_dispatch_request) { Railtie.register_media_type }
      ActiveSupport.on_load(:action_dispatch_integration_test) do
        Railtie.register_encoder(self)
        include TestHelper
      end
    end

    # Must run after the application's initializers, because they set the filtered parameters.
    initializer "castellan.profile", after: :load_config_initializers do |app|
      options = Railtie.profile_options(app)
      app.config.middleware.unshift(Castellan::Profile::Middleware, **options) if options
    end

    initializer "castellan.detect", after: :load_config_initializers do |app|
      middleware, options = Railtie.detection(app)
      app.config.middleware.use(middleware, **options) if middleware
    end

    # Where Rails inserts Rack::Cache: after host authorization, SSL and static files, and before all
    # middleware that handles single requests or clients. Rails chooses formats by both fields of `vary:`, and
    # sends Vary only with some of the formats. `fresh_when(post, public: true)` means validation, not a guess.
    initializer "castellan.http_cache", after: :load_config_initializers do |app|
      if (options = app.config.castellan.http_cache) && !Castellan.off?
        app.config.middleware.insert_before ActionDispatch::Executor, Castellan::HTTPCache,
                                            log: ->(line) { Rails.logger.warn(line) },
                                            vary: %w[Accept X-Requested-With], heuristic: false, **options
      end
    end

    initializer "castellan.verify", after: :load_config_initializers do |app|
      options = Railtie.verification(app)
      app.config.middleware.use(Castellan::Verify::Middleware, **options) if options
    end
  end
end

require_relative "railtie/test_helper"
