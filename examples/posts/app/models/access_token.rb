# frozen_string_literal: true

# A bearer token of a user; only its digest is kept, and looking that up tells nothing about the token.
class AccessToken < ApplicationRecord
  belongs_to :user

  def self.digest(token)
    Digest::SHA256.hexdigest(token)
  end
end
