# frozen_string_literal: true

# One process and five threads, so that all steps are measured with the same server.
environment ENV.fetch("RAILS_ENV", "production")
bind "tcp://127.0.0.1:#{ENV.fetch('PORT', '3000')}"
threads 5, 5
workers 0
quiet
