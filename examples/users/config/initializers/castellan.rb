# frozen_string_literal: true

# Caches documents in memory, as the other steps do. Triggers in the database count their versions; in your
# own application, install them with a migration.
if ENV["WITH_CASTELLAN"] == "1"
  Rails.application.config.after_initialize do
    versions = Castellan::Versions::ExactVersions.new(ActiveRecord::Base)
    versions.install(%w[assignments authentication_tokens employees group_assignments groups roles users])
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: versions)
  end
end
