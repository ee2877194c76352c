# frozen_string_literal: true

require_relative "boot"

require "rails"
require "active_record/railtie"
require "action_controller/railtie"

Bundler.require(*Rails.groups)

# An index of users in JSON:API, slow the way such an index gets slow, and one endpoint for each step that makes it
# faster: `config/routes.rb` lists them, `steps.yml` says what each of them is for.
#
#   bin/setup && PORT=3000 bundle exec puma -C config/puma.rb
#   curl -H 'Authorization: Bearer castellan-demo' 'http://127.0.0.1:3000/users/baseline?role=Administrator,Manager'
#
# With WITH_CASTELLAN=1 the steps that use Castellan are there too; without it the gem is never loaded. With a PROFILE_SECRET
# besides, whoever has a token signed with it has requests profiled and sees them at /castellan, in production as well.
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
