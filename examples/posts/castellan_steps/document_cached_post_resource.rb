# frozen_string_literal: true

# Caches the whole document. Any write to posts, comments or users makes it stale. The SQL is part of the key,
# so
# the posts of each viewer are a separate document.
class DocumentCachedPostResource < PostResource
  cache :exact
end
