# frozen_string_literal: true

require "set"

module Castellan
  module CLI
    # Finds each `Castellan.app` in a Rack application, and the path where it is mounted.
    #
    #   MountedApps.boot("config.ru", environment: "production").to_a   # => [["/api", #<Castellan::Serve::App>]]
    #
    # Searches middleware, `map` of config.ru, Rack::Cascade, and the routes of Rails and its engines. Other apps,
    # such as one that a block of Sinatra calls, have the path `at:`.
    class MountedApps
      # @return [Array<Array(String, Serve::App)>] the path of the mount point, "" for the root, and the app
      # @return [String, nil] a notice that some apps are missing, because their path is not known, or that `at:` is
      #   of no use
      attr_reader :to_a, :notice

      # @param file [String]
      # @param options those of {#initialize}
      # @return [MountedApps]
      # @raise [Castellan::Error] if the application does not boot
      def self.boot(file, environment:, **options)
        new(Doctor::Application.boot(file, environment: environment).app, file: file, **options)
      end

      # @param application [#call]
      # @param file [String] of the application, for messages
      # @param at [String, nil] the path of apps that are in no route
      # @raise [Castellan::Error] if there is no app, or none whose path is known
      def initialize(application, file:, at: nil)
        @to_a = []
        @seen = Set.new
        walk(application, "")
        missed = ObjectSpace.each_object(Serve::App).to_a - @to_a.map(&:last)
        @to_a.concat(missed.map { |app| [at, app] }) if at
        @notice = missed.any? ? (hidden(file) unless at) : ("--at #{at} changes nothing: each Castellan.app is in a route" if at)
        raise Error, missed.any? ? @notice : none(file) if @to_a.empty?
      end

      private

      def none(file)
        "#{file} mounts no Castellan.app: write `run Castellan.app { resource PostResource }`, or leave out the file"
      end

      def hidden(file)
        "#{file} has a Castellan.app that is mounted neither with map of config.ru nor with mount of Rails; " \
          "write its path: --at /api"
      end

      def walk(application, prefix)
        application = application.app if application.is_a?(Serve::LateApp)
        return if application.nil? || !@seen.add?([prefix, application.object_id])
        return @to_a << [prefix, application] if application.is_a?(Serve::App)
        return routes(application, prefix) if rails?(application)

        case application
        when Rack::URLMap
          application.instance_variable_get(:@mapping).each { |_host, path, _pattern, inner| walk(inner, "#{prefix}#{path.chomp("/")}") }
        when Rack::Cascade then application.apps.each { |inner| walk(inner, prefix) }
        else inside(application).each { |inner| walk(inner, prefix) }
        end
      end

      # Most middleware has its application in @app, but newrelic_rpm wraps each in an object that has it in @target.
      # Other variables are not read: in those of an application that routes by itself, the path is unknown.
      def inside(application) = %i[@app @target].filter_map { |name| application.instance_variable_get(name) }

      def rails?(application)
        defined?(::Rails::Engine) && (application.is_a?(::Rails::Engine) || (application.is_a?(Class) && application < ::Rails::Engine))
      end

      # Rails 8 draws routes late.
      def routes(engine, prefix)
        engine.reload_routes_unless_loaded if engine.respond_to?(:reload_routes_unless_loaded)
        engine.routes.routes.each do |route|
          path = route.path.anchored ? "" : route.path.spec.to_s.chomp("/")
          walk(route.app.app, "#{prefix}#{path}")
        end
      end
    end
  end
end
