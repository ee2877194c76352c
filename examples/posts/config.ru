# frozen_string_literal: true

require_relative "config/environment"

# The steps with Castellan need no middleware of Rails (sessions, hosts, logs), so they run before it; the executor
# releases the connection of each request.
if ENV["WITH_CASTELLAN"] == "1"
  use Castellan::HTTPCache, only: "/posts/shared"
  map("/posts/castellan/public") { run PostsApi.everybody }
  map("/posts/castellan") do
    use ActionDispatch::Executor, Rails.application.executor
    run PostsApi.viewers
  end
end

run Rails.application
