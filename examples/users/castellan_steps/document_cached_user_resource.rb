# frozen_string_literal: true

# The whole document kept: any write to a table that it reads makes it stale, also one around the models.
class DocumentCachedUserResource < UserResource
  cache :exact, expires_in: 12.hours
end
