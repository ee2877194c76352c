# frozen_string_literal: true

# Caches the whole document like DocumentCachedPostResource. The versions are in memory: PostgreSQL notifies
# each process when one changes.
class NotifiedPostResource < PostResource
  cache :notified
end
