# frozen_string_literal: true

# The whole document kept; any write to posts, comments or users makes it stale. The statement is part of the key, so every
# viewer's posts are a document of their own.
class DocumentCachedPostResource < PostResource
  cache :exact, expires_in: 12.hours
end
