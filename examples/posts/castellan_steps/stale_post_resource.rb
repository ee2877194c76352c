# frozen_string_literal: true

# For two seconds after a change, requests get the document from before it, while one of them makes the next.
class StalePostResource < PostResource
  cache :exact, stale_while_revalidate: 2
end
