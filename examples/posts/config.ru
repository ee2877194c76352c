# frozen_string_literal: true

require_relative "config/environment"

# The steps with Castellan need nothing of Rails' middleware (sessions, hosts, logs), so they are answered before it; the executor
# is what gives a request's connection back.
if ENV["WITH_CASTELLAN"] == "1"
  map("/posts/castellan/public") { run PostsApi.everybody }
  map("/posts/castellan") do
    use ActionDispatch::Executor, Rails.application.executor
    run PostsApi.viewers
  end
end

run Rails.application
