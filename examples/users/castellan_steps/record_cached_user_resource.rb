# frozen_string_literal: true

# Each user kept by itself: an edit of one user makes one stale, an edit of a role or a group all of them.
class RecordCachedUserResource < UserResource
  cache :exact, expires_in: 12.hours, layer: :record
end
