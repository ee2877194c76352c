# frozen_string_literal: true

# Each post kept by itself: an edit of one post makes one stale, an edit of an author all of them.
class RecordCachedPostResource < PostResource
  cache :exact, expires_in: 12.hours, layer: :record
end
