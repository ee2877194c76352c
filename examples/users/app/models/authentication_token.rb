# frozen_string_literal: true

class AuthenticationToken < ApplicationRecord
  belongs_to :user, touch: true

  # The newest token of each user that was not used on behalf of the user. A subquery per row checks whether
  # there
  # is a newer one, so the cost depends on the tokens of the selected users, not on the size of the table.
  scope :newest_own, lambda {
    newer = "SELECT 1 FROM authentication_tokens newer WHERE newer.user_id = authentication_tokens.user_id " \
            "AND newer.on_behalf = authentication_tokens.on_behalf AND newer.id > authentication_tokens.id"
    where(on_behalf: false).where("NOT EXISTS (#{newer})")
  }
end
