# frozen_string_literal: true

# Caches documents in memory, as the other steps do. Triggers in the database count their versions; in your
# own application, install them with a migration.
if ENV["WITH_CASTELLAN"] == "1"
  Rails.application.config.after_initialize do
    versions = Castellan::Versions::ExactVersions.new(ActiveRecord::Base)
    versions.install(%w[comments posts readings users])
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: versions)
    [Comment, Post, User].each { |model| model.after_commit { Castellan::HTTPCache.purge_tags("posts") } }
  end
end
