# frozen_string_literal: true

# Applications for `castellan proxy KIND config.ru`: the same resources under /api and /private, in Rack and in Rails.
#
#   File.write("config.ru", MountedApplication::RACK)
#
# Each response has the number of its request in X-Number. With CHANGED=1, all documents are those of a viewer, whom
# X-Viewer names, so the printed configuration is outdated.
module MountedApplication
  RESOURCES = <<~RUBY
    require "sequel"
    require "castellan"
    puts "server 192.0.2.1;" # the configuration must not contain it
    DB = Sequel.sqlite
    DB.create_table(:people) { primary_key :id; String :name }
    DB.create_table(:posts) { primary_key :id; String :title; foreign_key :person_id, :people }
    DB[:people].insert(name: "Ada")
    DB[:posts].insert(title: "One", person_id: 1)
    class Person < Sequel::Model; one_to_many :posts; end
    class Post < Sequel::Model; end
    class PostResource < Castellan::Resource
      model Post
      attributes :title
      cache_control s_maxage: 600, stale_while_revalidate: 30
    end
    class DraftResource < Castellan::Resource
      model Post
      type "drafts"
      attributes :title
    end
    class NoteResource < Castellan::Resource
      model Post
      type "notes"
      attributes :title
      cache_control cdn: { max_age: 600, stale_if_error: 60 }
    end
    class PersonResource < Castellan::Resource
      model Person
      type "people"
      attributes :name
    end
    class WriterResource < Castellan::Resource
      model Person
      type "writers"
      attributes :name
      has_many :posts
    end
    class FanResource < Castellan::Resource
      model Person
      type "fans"
      per_viewer(:liked) { |ids, _viewer| ids }
      cache_control s_maxage: 600
    end
    API = Castellan.app {
      authenticate { |env| env["HTTP_X_VIEWER"] } if ENV["CHANGED"]
      resource PostResource
      resource DraftResource, at: "posts/drafts"
      [NoteResource, PersonResource, WriterResource, FanResource].each { |one| resource one }
      openapi title: "API", version: "1"
    }
    PRIVATE = Castellan.app {
      authenticate { |env| env["HTTP_X_VIEWER"] }
      resource PostResource
    }
    class Number
      def initialize(app) = (@app, @number = app, 0)

      def call(env)
        status, headers, body = @app.call(env)
        [status, headers.merge("x-number" => (@number += 1).to_s), body]
      end
    end
  RUBY
  RACK = <<~RUBY.freeze
    #{RESOURCES}
    use Number
    map("/api") { run API }
    map("/private") do
      use Number
      run PRIVATE
    end
  RUBY
  RAILS = <<~RUBY.freeze
    require "action_controller/railtie"
    #{RESOURCES}
    class Site < Rails::Application
      config.eager_load = true
      config.secret_key_base = "secret"
      config.logger = Logger.new($stderr)
      config.hosts.clear
      config.middleware.use Number
    end
    class Admin < Rails::Engine
      isolate_namespace Admin
    end
    Site.initialize!
    Admin.routes.draw { mount PRIVATE => "/" }
    Rails.application.routes.draw do
      mount API => "/api"
      mount Admin => "/private"
    end
    run Rails.application
  RUBY
end
