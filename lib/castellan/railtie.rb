# frozen_string_literal: true

require "rails/railtie"
require "active_support/ordered_options"

module Castellan
  # Wires Castellan into a Rails application: two things, both by Rails' public configuration.
  #
  #   config.castellan.detection = false   # in config/environments/development.rb: do not watch for repeated queries
  #
  # In development, requests are watched for repeated queries ({Detect::Middleware}). Where code is loaded at boot
  # (`config.eager_load`), every resource is held against the database then, so that a wrong name is found before a request; a
  # database that does not answer yet (an image that is being built) is logged and no error. With CASTELLAN=off neither is done.
  #
  # `render json: document` and `stale?(**document.validators)` need nothing of this. A `Castellan.app` holds the classes that it
  # was given: in routes.rb it is built anew only when Rails loads the routes again.
  class Railtie < Rails::Railtie
    config.castellan = ActiveSupport::OrderedOptions.new
    config.castellan.detection = true

    class << self
      # Checks every resource that is loaded; nothing is loaded for it.
      # @raise [DeclarationError] naming the file, the line and the nearest right name
      def check
        Castellan.check! unless Castellan.autoload?(:Resource)
      rescue *database_errors => error
        Rails.logger&.warn("castellan: resources are checked with their first document, because the database does not answer: " \
                           "#{error.message}")
      end

      private

      def database_errors
        [(ActiveRecord::ActiveRecordError if defined?(ActiveRecord::Base)), (Sequel::Error if defined?(Sequel::Database))].compact
      end
    end

    # Last, because in an application that is initialised already the block runs at once.
    config.after_initialize do |app|
      Railtie.check if app.config.eager_load && !Castellan.off?
    end

    initializer "castellan.detect" do |app|
      if Rails.env.development? && app.config.castellan.detection && !Castellan.off?
        Castellan::CallSite.root = Rails.root.to_s
        app.config.middleware.use Castellan::Detect::Middleware, logger: Rails.logger
      end
    end
  end
end
