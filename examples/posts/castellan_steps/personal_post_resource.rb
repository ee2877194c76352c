# frozen_string_literal: true

# The document kept once for all its readers, with a hole where `read_before` belongs; one statement fills all of them.
class PersonalPostResource < DocumentCachedPostResource
  per_viewer(:read_before) { |post_ids, viewer| viewer.readings.where(post_id: post_ids).pluck(:post_id) }
end
