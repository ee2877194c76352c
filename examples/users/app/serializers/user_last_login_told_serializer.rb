# frozen_string_literal: true

class UserLastLoginToldSerializer < UserIndexSerializer
  type "users"

  def last_login_at
    object.last_login_token_told&.last_used_at
  end
end
