# frozen_string_literal: true

require_relative "config/environment"

# The steps with Castellan run before Rails' middlewares, because they need none of them (sessions, hosts,
# logs). The executor releases the connection of each request.
if ENV["WITH_CASTELLAN"] == "1"
  use Castellan::HTTPCache, only: "/posts/shared"
  map("/posts/castellan/public") { run PostsApi.everybody }
  map("/posts/castellan/stale") { run PostsApi.everybody(StalePostResource) }
  map("/posts/castellan/notified") { run PostsApi.everybody(NotifiedPostResource) }
  map("/posts/castellan/proxied") { run PostsApi.proxied } if ENV["PROXY_URL"]
  map("/posts/castellan/limited") do
    use Castellan::RateLimit, limit: 1_000_000, period: 60, store: Castellan::Store::MemoryStore.new
    run PostsApi.everybody
  end
  map("/posts/castellan") do
    use ActionDispatch::Executor, Rails.application.executor
    run PostsApi.viewers
  end
end

run Rails.application
