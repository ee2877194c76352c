# frozen_string_literal: true

# Caches documents in memory, as the other steps do, and also in Redis if REDIS_URL is set. Triggers in the
# database count their versions; in your own application, install them with a migration.
if ENV["WITH_CASTELLAN"] == "1"
  Rails.application.config.after_initialize do
    notifies = ActiveRecord::Base.connection.adapter_name == "PostgreSQL"
    versions = Castellan::Versions.const_get(notifies ? :NotifiedVersions : :ExactVersions).new(ActiveRecord::Base)
    versions.install(%w[comments posts readings users])
    store = Castellan::Store::MemoryStore.new
    redis = Castellan::Store::RedisStore.new(url: ENV["REDIS_URL"]) if ENV["REDIS_URL"]
    Castellan.keep(store: redis ? Castellan::Store::TieredStore.new(store, redis) : store, versions: versions)
    [Comment, Post, User].each { |model| model.after_commit { Castellan::HTTPCache.purge_tags("posts") } }
  end
end
