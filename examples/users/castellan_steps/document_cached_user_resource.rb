# frozen_string_literal: true

# Caches the whole document: any write to a table that it reads makes it stale, also without models.
class DocumentCachedUserResource < UserResource
  cache :exact, expires_in: 12.hours
end
