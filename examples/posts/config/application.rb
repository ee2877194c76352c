# frozen_string_literal: true

require_relative "boot"

require "rails"
require "active_record/railtie"
require "action_controller/railtie"

Bundler.require(*Rails.groups)

# A slow feed of posts as nested JSON, with an endpoint for each layer of caching. `config/routes.rb` lists
# the endpoints, and `steps.yml` describes them.
#
#   bin/setup && PORT=3000 bundle exec puma -C config/puma.rb
#   curl -H 'Authorization: Bearer viewer-1' 'http://127.0.0.1:3000/posts/naive'
#
# WITH_CASTELLAN=1 adds the steps with Castellan. Without it, the gem is not loaded.
module PostsExample
  class Application < Rails::Application
    config.load_defaults 7.2
    config.api_only = true
    config.cache_store = :memory_store
    config.secret_key_base = "an example that keeps no secret: #{'0' * 64}"

    if ENV["WITH_CASTELLAN"] == "1"
      require "castellan"
      config.paths.add "castellan_steps", eager_load: true
    end
  end
end
