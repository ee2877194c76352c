# frozen_string_literal: true

require "rails"
require "active_record/railtie"
require "action_controller/railtie"
require "rack/mock"

module ProfileBenchmark
  # A Rails application that reads all users, and then each user once more: 101 queries.
  #
  #   Works.boot
  #   Works.request(Rails.application)   # => the response, after reading and closing its body
  module Works
    USERS = 100
    FRAMES = 150

    class User < ActiveRecord::Base
      has_one :employee, class_name: "ProfileBenchmark::Works::Employee"
    end

    class Employee < ActiveRecord::Base; end

    # Renders the users with an N+1 query.
    class UsersController < ActionController::API
      def index
        render json: User.order(:id).map { |user| user.as_json.merge("employee" => user.employee.as_json) }
      end
    end

    # Calls the application so deep that a statement has FRAMES frames, as with many middlewares.
    class Deep
      def initialize(app, frames)
        @app = app
        @frames = frames
      end

      def call(env) = down(@frames, env)

      private

      def down(frames, env) = frames.zero? ? @app.call(env) : down(frames - 1, env)
    end

    class << self
      # @return [#call] the application
      def boot
        ActiveRecord::Base.logger = nil
        application
        fill
        missing = FRAMES - depth(Rails.application)
        @app = Deep.new(Rails.application, [missing, 0].max)
      end

      # @return [Array(Integer, String)] status and body
      def request(app, headers = {})
        status, _headers, body = app.call(env(headers))
        text = +""
        body.each { |chunk| text << chunk }
        yield if block_given?
        body.close if body.respond_to?(:close)
        [status, text]
      end

      # @return [Hash] the environment of a request
      def env(headers = {}) = Rack::MockRequest.env_for("/users", "REMOTE_ADDR" => "127.0.0.1", **headers)

      # @return [Integer] the number of frames of a statement
      def depth(app)
        deepest = 0
        counter = ->(*) { deepest = [deepest, caller.size].max }
        ActiveSupport::Notifications.subscribed(counter, "sql.active_record") { request(app) }
        deepest
      end

      private

      def application
        ENV["RAILS_ENV"] = "production"
        app = Class.new(Rails::Application) do
          config.root = __dir__
          config.load_defaults 7.2
          config.eager_load = false
          config.secret_key_base = "a" * 64
          config.hosts.clear
          config.logger = Logger.new(IO::NULL, level: Logger::INFO)
          config.cache_store = :null_store
          config.consider_all_requests_local = true
        end
        ENV["DATABASE_URL"] = "sqlite3::memory:"
        app.initialize!
        app.routes.draw { get "/users", to: ->(env) { UsersController.action(:index).call(env) } }
      end

      def fill
        ActiveRecord::Schema.verbose = false
        ActiveRecord::Schema.define do
          create_table(:users) { |table| %i[email first_name last_name city].each { |name| table.string(name) } && table.timestamps }
          create_table(:employees) { |table| table.integer(:user_id) && table.string(:number) && table.timestamps }
        end
        USERS.times do |number|
          user = User.create!(email: "#{number}@example.org", first_name: "First #{number}", last_name: "Last", city: "City")
          Employee.create!(user_id: user.id, number: "E-#{number}")
        end
      end
    end
  end
end
