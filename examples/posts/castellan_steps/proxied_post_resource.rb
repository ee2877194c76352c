# frozen_string_literal: true

# Proxies may keep the document for ten minutes. `purge` in posts_api.rb replaces it there after a change.
class ProxiedPostResource < DocumentCachedPostResource
  cache_control s_maxage: 600
end
