# frozen_string_literal: true

class UserLastLoginSerializer < UserIndexSerializer
  type "users"

  def last_login_at
    object.last_login_token&.last_used_at
  end
end
