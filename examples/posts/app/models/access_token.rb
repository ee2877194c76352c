# frozen_string_literal: true

# A user's bearer token. Only the digest is stored, so the time of a lookup reveals nothing about the token.
class AccessToken < ApplicationRecord
  belongs_to :user

  def self.digest(token)
    Digest::SHA256.hexdigest(token)
  end
end
