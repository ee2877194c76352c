# frozen_string_literal: true

# Loads the small core and autoloads the rest. Loads neither Rails nor an ORM nor OpenSSL.
#
#   require "castellan"          # in an application
#   require "castellan/detect"   # only one part
require_relative "castellan/version"
require_relative "castellan/errors"
require_relative "castellan/config"
require_relative "castellan/clock"

module Castellan
  autoload :BoundedCache, "castellan/bounded_cache"
  autoload :Cache, "castellan/cache"
  autoload :ClientText, "castellan/client_text"
  autoload :CallSite, "castellan/call_site"
  autoload :CLI, "castellan/cli"
  autoload :Controller, "castellan/controller"
  autoload :Detect, "castellan/detect"
  autoload :Doctor, "castellan/doctor"
  autoload :Document, "castellan/document"
  autoload :EndpointName, "castellan/endpoint_name"
  autoload :Figures, "castellan/figures"
  autoload :Finding, "castellan/finding"
  autoload :Fingerprint, "castellan/fingerprint"
  autoload :HTTP, "castellan/http"
  autoload :HTTPCache, "castellan/http_cache"
  autoload :Inflector, "castellan/inflector"
  autoload :Instrument, "castellan/instrument"
  autoload :Keeper, "castellan/keeper"
  autoload :Ledger, "castellan/ledger"
  autoload :LoadTest, "castellan/load_test"
  autoload :Measurement, "castellan/measurement"
  autoload :PendingMigrations, "castellan/pending_migrations"
  autoload :Plan, "castellan/plan"
  autoload :PostgresStatements, "castellan/postgres_statements"
  autoload :Profile, "castellan/profile"
  autoload :Purge, "castellan/purge"
  autoload :RateLimit, "castellan/rate_limit"
  autoload :Recording, "castellan/recording"
  autoload :Rows, "castellan/rows"
  autoload :Serialize, "castellan/serialize"
  autoload :Serializer, "castellan/serializer"
  autoload :Serve, "castellan/serve"
  autoload :SqliteStatements, "castellan/sqlite_statements"
  autoload :Store, "castellan/store"
  autoload :Verify, "castellan/verify"
  autoload :Versions, "castellan/versions"
  autoload :Write, "castellan/write"

  # Declares a JSON:API type. The methods are in resource.rb, which the first subclass loads.
  class Resource
    def self.inherited(resource)
      require_relative "castellan/document"
      super
    end
    private_class_method :inherited
  end

  # Caches the documents of resources that declare `cache`, see {Keeper}.
  #
  #   Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: Castellan::Versions::ExactVersions.new(ActiveRecord::Base))
  #
  # @return [Keeper]
  def self.keep(store:, versions:, **options)
    self.keeper = Keeper.new(store: store, versions: versions, **options)
  end

  # Caches the bytes of the application's own serializers, see {Keeper::ApplicationCache}.
  #
  #   Castellan.cache.fetch(["posts", page], depends_on: [Post, "comments"]) { PostSerializer.new(posts).to_json }
  #
  # @return [Keeper::ApplicationCache] caches nothing until {Castellan.keep} is called
  def self.cache
    keeper&.application_cache || Keeper::ApplicationCache.new(store: Store::NullStore.new)
  end

  # Renders the block's documents from rows and from models, and compares them; see {Verify}.
  #
  #   Castellan.verify { UserResource.render(include: "roles") }.differences   # => []
  #
  # @return [Verify::Verification]
  def self.verify(&block)
    Verify.call(&block)
  end

  # Builds a JSON:API server as a Rack application. While ActiveRecord's database does not answer or
  # migrations are pending, the app is built with the first request. So is one with an error while Rails reloads
  # code: raised here, it would leave Rails without routes until the next change.
  #
  #   run Castellan.app { resource UserResource }
  #
  # @return [#call] see {Serve::App}
  def self.app(&block)
    reason = PendingMigrations.reason
    return Serve::App.new(&block) unless reason

    late_app(reason, &block)
  rescue StandardError, ScriptError => error
    late_app(Serve::LateApp.reason(error) || raise, &block)
  end

  def self.late_app(reason, &block)
    warn("castellan: resources are checked with the first request, because #{reason}")
    Serve::LateApp.new(&block)
  end
  private_class_method :late_app
end

if defined?(Rails::Railtie)
  require_relative "castellan/railtie"
else
  # Rails may be loaded later. In a bundle with Rails, load ActiveSupport's hooks alone, and its version, which
  # other gems (rack-attack) read where they find ActiveSupport.
  if defined?(Gem) && Gem.loaded_specs.key?("railties")
    require "active_support/lazy_load_hooks"
    require "active_support/version"
  end
  ActiveSupport.on_load(:before_configuration) { require "castellan/railtie" } if defined?(ActiveSupport.on_load)
end
