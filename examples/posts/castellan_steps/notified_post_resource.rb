# frozen_string_literal: true

# Caches the whole document like DocumentCachedPostResource. The versions are in memory: PostgreSQL notifies
# each process when one changes.
class NotifiedPostResource < PostResource
  cache :notified, expires_in: 12.hours
end
