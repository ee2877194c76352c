# frozen_string_literal: true

# An application behind the cache in CACHE: none, castellan, vary, redis or rack-cache. Each response that it
# renders has another number in X-Made; /304 is a constant empty response.
require "castellan"
require "rack/cache" if ENV["CACHE"] == "rack-cache"

posts = Array.new(20) { |id| %({"type":"posts","id":"#{id}","attributes":{"title":"A title of a post"}}) }
body = "{\"data\":[#{posts.join(",")}]}"
made = 0
vary = ENV["CACHE"] == "vary" ? { "vary" => "accept-encoding" } : {}
fields = { "content-type" => "application/vnd.api+json", "cache-control" => "public, max-age=3600", "etag" => "\"one\"", **vary }

case ENV.fetch("CACHE")
when "castellan", "vary" then use Castellan::HTTPCache
when "redis" then use Castellan::HTTPCache, store: Castellan::Store::RedisStore.new(url: ENV.fetch("REDIS_URL"))
when "rack-cache" then use Rack::Cache, metastore: "heap:/", entitystore: "heap:/", verbose: false
end

run(lambda do |env|
  if env["PATH_INFO"] == "/304"
    [304, { "etag" => "\"one\"" }, []]
  else
    [200, { **fields, "x-made" => (made += 1).to_s, "content-length" => body.bytesize.to_s }, [body]]
  end
end)
