# frozen_string_literal: true

# One process with five threads, as published, so that the servers are compared and not the number of cores.
# PORT=9293 bundle exec puma -C config/puma.rb

bind "tcp://127.0.0.1:#{ENV.fetch("PORT", "9293")}"
environment ENV.fetch("RACK_ENV", "production")
workers 0
threads 5, 5
