# frozen_string_literal: true

require "forwardable"

module Castellan
  module Serve
    # Builds an {App} with the first request, because its tables cannot be read yet, or code has an error that
    # Rails will reload. See {PendingMigrations}.
    #
    #   LateApp.new { resource UserResource }   # has the public methods of an {App}
    #
    # New code may get requests before its migration has run: until then, they are answered by a 503.
    class LateApp
      extend Forwardable

      def_delegators :app, :route, :endpoint_of, :resource_endpoints, :other_paths, :purge

      # @param error [Exception] raised by a resource, which may be of another database than the primary one
      # @return [String, nil] why its app can be built later; nil: raise the error
      def self.reason(error)
        text = error.message.lines.first&.chomp
        if defined?(::ActiveRecord::ActiveRecordError) && error.is_a?(::ActiveRecord::ActiveRecordError) &&
           Write::DatabaseError.unavailable?(error)
          "a database does not answer: #{text}"
        elsif defined?(::Rails::Application) && ::Rails.application&.config&.reloading_enabled?
          "there is an error, and Rails reloads code: #{text}"
        end
      end

      def initialize(&block)
        @block = block
        @lock = Mutex.new
        @app = nil
        @early = false
      end

      # @return [App]
      # @raise [Castellan::Error] if a declaration is wrong
      def app
        @app || @lock.synchronize { @app ||= build }
      end

      # @param env [Hash] Rack's environment
      # @return [Array] Rack's response; 503 while the database does not answer, or the app cannot be built before a migration
      def call(env)
        (@app || built).call(env)
      end

      # @param (see App#cost)
      # @return [Integer] see {App#cost}; 1 while the app cannot be built
      def cost(request, at: "")
        app.cost(request, at: at)
      rescue StandardError, ScriptError
        1 # the response tells the error
      end

      # Builds nothing, because `rails routes` calls it.
      # @return [String]
      def inspect = "#<#{self.class}>"

      private

      def build
        ::ActiveRecord::Base.descendants.each(&:reset_column_information) if @early && PendingMigrations.reason.nil?
        App.new(&@block)
      end

      def built
        app
      rescue StandardError => error
        refusal = Write::DatabaseError.unavailable?(error) ? Write::DatabaseError.unavailable : early(error)
        raise unless refusal

        ->(_env) { ErrorDocument.of(refusal) }
      end

      # @return [BadRequest, nil] 503 while migrations are pending
      def early(error)
        reason = PendingMigrations.reason or return
        warn("castellan: each request gets a 503, because #{reason}: #{error.message}") unless @early
        @early = true
        BadRequest.new("the service is not ready yet; try again", status: 503, title: "Service unavailable")
      end
    end
  end
end
