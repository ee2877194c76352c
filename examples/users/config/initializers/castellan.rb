# frozen_string_literal: true

# With the Castellan steps, documents are kept in memory, as the other steps' are, and their versions are counted by triggers in
# the database. An application of one's own installs them in a migration.
if ENV["WITH_CASTELLAN"] == "1"
  Rails.application.config.after_initialize do
    versions = Castellan::Versions::ExactVersions.new(ActiveRecord::Base)
    versions.install(%w[assignments authentication_tokens employees group_assignments groups roles users])
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: versions)
  end
end
