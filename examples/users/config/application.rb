# frozen_string_literal: true

require_relative "boot"

require "rails"
require "active_record/railtie"
require "action_controller/railtie"

Bundler.require(*Rails.groups)

# A slow index of users in JSON:API, with an endpoint for each step that makes it faster. `config/routes.rb`
# lists the endpoints, and `steps.yml` describes them.
#
#   bin/setup && PORT=3000 bundle exec puma -C config/puma.rb
#   curl -H 'Authorization: Bearer castellan-demo' 'http://127.0.0.1:3000/users/baseline?role=Administrator,Manager'
#
# WITH_CASTELLAN=1 adds the steps with Castellan. Without it, the gem is not loaded. With PROFILE_SECRET,
# requests with a token that is signed with it are profiled and shown at /castellan, in production, too.
module UsersExample
  class Application < Rails::Application
    config.load_defaults 7.2
    config.api_only = true
    config.cache_store = :memory_store
    config.secret_key_base = "an example that keeps no secret: #{'0' * 64}"

    if ENV["WITH_CASTELLAN"] == "1"
      require "castellan"
      config.paths.add "castellan_steps", eager_load: true
      if ENV["PROFILE_SECRET"]
        profiles = Castellan::Store::DirectoryStore.new(ENV.fetch("PROFILE_DIRECTORY") { "#{config.root}/tmp/castellan" })
        config.castellan.profile = { secret: ENV.fetch("PROFILE_SECRET"), store: profiles }
      end
    end
  end
end
