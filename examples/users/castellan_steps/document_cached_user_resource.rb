# frozen_string_literal: true

# Caches the whole document. Any write to one of its tables makes it stale, with or without models.
class DocumentCachedUserResource < UserResource
  cache :exact
end
