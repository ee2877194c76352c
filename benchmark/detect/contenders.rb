# frozen_string_literal: true

require "castellan/detect"
require "logger"

module Benchmarks
  module Detect
    # The detectors to compare, each in its usual configuration.
    #
    #   watch = Contenders.make("Castellan, production")
    #   watch.call(app, env)   # => the response, observed by the detector
    #
    # Each runs in its own process, because Bullet changes ActiveRecord permanently.
    module Contenders
      CASTELLAN = ["Castellan, production, every request", "Castellan, production", "Castellan, development"].freeze
      PEERS = %w[Bullet Prosopite].freeze
      # Does nothing; its figure is the error of the measurement.
      NOBODY = "nobody"
      SILENT = Logger.new(nil)

      module_function

      # @return [#call]
      def make(name)
        case name
        when "Castellan, production, every request" then production(sample: 1)
        when "Castellan, production" then production
        when "Castellan, development" then development
        when NOBODY then ->(app, env) { app.call(env) }
        when "Bullet" then bullet
        when "Prosopite" then prosopite
        end
      end

      def production(**options)
        Castellan::Detect.production(logger: SILENT, **options)
      end

      def development
        app = nil
        middleware = Castellan::Detect::Middleware.new(->(env) { app.call(env) }, environment: "development", logger: SILENT)
        lambda do |given, env|
          app = given
          middleware.call(env)
        end
      end

      def bullet
        require "bullet"
        Bullet.enable = true
        lambda do |app, env|
          Bullet.start_request
          app.call(env).tap { Bullet.perform_out_of_channel_notifications(env) if Bullet.notification? }
        ensure
          Bullet.end_request
        end
      end

      def prosopite
        require "active_support/backtrace_cleaner"
        require "prosopite"
        Prosopite.custom_logger = SILENT
        Prosopite.backtrace_cleaner = ActiveSupport::BacktraceCleaner.new
        ->(app, env) { Prosopite.scan { app.call(env) } }
      end
    end
  end
end
