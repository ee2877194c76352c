# frozen_string_literal: true

# Caches one document for all viewers, with a placeholder for `read_before`. One query fills all placeholders.
class PersonalPostResource < DocumentCachedPostResource
  per_viewer(:read_before) { |post_ids, viewer| viewer.readings.where(post_id: post_ids).pluck(:post_id) }
end
