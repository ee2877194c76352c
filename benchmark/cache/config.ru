# frozen_string_literal: true

# Serves a page of posts from each layer of caching: Castellan's before the router of Rails, Rails' own after
# it, and constant bytes.
require "rails"
require "action_controller/railtie"
require "active_record"
require "rack/deflater"
require "castellan"
require_relative "library"

VIEWERS = 1_000

ActiveRecord::Base.establish_connection(ENV.fetch("DATABASE_URL"))
ActiveRecord::Base.logger = nil

# Reads a page of posts with authors and comments like a typical Rails application.
class PostsController < ActionController::API
  def naive = render(json: { data: posts.map { |post| as_hash(post) } })

  def document = render(json: Rails.cache.fetch(["posts/document", version]) { JSON.generate(data: posts.map { |post| as_hash(post) }) })

  def not_modified
    fresh_when(etag: version)
  end

  # Fragment caching as in the story: a cached hash per record, and a query for the viewer's attribute of
  # each.
  def fragment
    viewer = Viewers.next
    list, hashes = fragments
    render json: { data: list.map { |post| hashes[post].merge("read" => Reading.exists?(user_id: viewer, post_id: post.id)) } }
  end

  # The same with one query for the viewer's attribute of all records.
  def fragment_batched
    list, hashes = fragments
    read = Reading.where(user_id: Viewers.next, post_id: list.map(&:id)).pluck(:post_id).to_set
    render json: { data: list.map { |post| hashes[post].merge("read" => read.include?(post.id)) } }
  end

  # Castellan's cache for Rails' own serializer.
  def fetched
    render json: Castellan.cache.fetch("posts", depends_on: [Post, Author, Comment], notified: true) {
      JSON.generate(data: posts.map { |post| as_hash(post) })
    }
  end

  private

  def fragments
    list = Post.page.to_a
    [list, Rails.cache.fetch_multi(*list, namespace: "posts/fragment") { |post| as_hash(post) }]
  end

  def posts = Post.page.preload(:author, :comments)

  def version
    [Post, Author, Comment].map { |model| model.pick(Arel.sql("count(*)::text || max(updated_at)::text")) }.join("-")
  end

  def as_hash(post)
    { "id" => post.id, "title" => post.title, "body" => post.body,
      "author" => { "id" => post.author.id, "name" => post.author.name },
      "comments" => post.comments.map { |comment| { "id" => comment.id, "body" => comment.body } } }
  end
end

class BenchmarkApplication < Rails::Application
  config.load_defaults Rails::VERSION::STRING.to_f
  config.eager_load = true
  config.consider_all_requests_local = false
  config.logger = Logger.new(nil)
  config.secret_key_base = "a" * 64
  config.hosts.clear
  config.cache_store = :redis_cache_store, { url: ENV.fetch("REDIS_URL"), namespace: "rails" }
  routes.append { get "/:action", controller: "posts" }
end
BenchmarkApplication.initialize!

redis = Castellan::Store::RedisStore.new(url: ENV.fetch("REDIS_URL"))
tiered = Castellan::Store::TieredStore.new(Castellan::Store::MemoryStore.new, redis)
versions = Castellan::Versions::NotifiedVersions.new(ActiveRecord::Base)
Castellan.keep(store: ENV["STORE"] == "redis" ? redis : tiered, versions: versions)

castellan = Castellan.app do
  resource ExactPostResource, at: "exact"
  resource NotifiedPostResource, at: "notified"
  resource UnkeptPostResource, at: "anew"
end
personal = Castellan.app do
  resource PersonalPostResource, at: "personal"
  resource VersionedPostResource, at: "versioned"
  authenticate { |_env| Viewers.next }
end

bytes = NotifiedPostResource.render(query: { "include" => "author,comments" }, keeper: nil)
gzip = Castellan::Cache::Compression.call("gzip", bytes)
# The header fields that Castellan sends; each response has a Hash of its own.
FIELDS = { "etag" => '"castellan-constant-bytes-of-page"', "vary" => "accept, accept-encoding",
           "cache-control" => "public, no-cache" }.freeze
constant = lambda do |body, **fields|
  sent = Castellan::Serve::Endpoint::Body.of(body) # Puma copies the strings of an Array
  lambda do |_env|
    [200, { **FIELDS, "content-type" => "application/json; charset=utf-8", "content-length" => body.bytesize.to_s, **fields }, sent]
  end
end
empty = ->(_env) { [304, FIELDS.dup, []] }

# The minimum cost of an exact version, hand-written: a query for the counters of three tables, on its own
# connection.
VERSION = "SELECT sum(n) FROM castellan_versions WHERE relation IN ('posts'::regclass, 'authors'::regclass, 'comments'::regclass)"
asking = lambda do |answer|
  lambda do |env|
    connection = Thread.current[:by_hand] ||= PG.connect(ENV.fetch("DATABASE_URL")).tap { |made| made.prepare("version", VERSION) }
    connection.exec_prepared("version", []).getvalue(0, 0)
    answer.call(env)
  end
end

deflated = Rack::Deflater.new(Rails.application)
applications = { "constant" => constant.call(bytes), "version" => asking.call(constant.call(bytes)),
                 "constant-gzip" => constant.call(gzip, "content-encoding" => "gzip", "etag" => FIELDS["etag"].sub(/"\z/, '-gzip"')),
                 "constant-304" => empty, "castellan" => castellan, "viewers" => personal, "rails" => Rails.application,
                 "rails-gzip" => deflated }.freeze

# Finds each in the same time; Rack::URLMap tries one location after the other.
run lambda { |env|
  _, name, path = env["PATH_INFO"].split("/", 3)
  env["SCRIPT_NAME"] = "/#{name}"
  env["PATH_INFO"] = "/#{path}"
  applications.fetch(name).call(env)
}
