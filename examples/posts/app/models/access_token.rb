# frozen_string_literal: true

# A bearer token of a user. Only its digest is stored; the duration of the look-up reveals nothing about the token.
class AccessToken < ApplicationRecord
  belongs_to :user

  def self.digest(token)
    Digest::SHA256.hexdigest(token)
  end
end
