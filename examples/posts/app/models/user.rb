# frozen_string_literal: true

class User < ApplicationRecord
  has_many :posts, foreign_key: :author_id, inverse_of: :author
  has_many :readings
  has_many :access_tokens

  # Sends a query on each call: in a loop, one per post.
  def read_before?(post)
    readings.exists?(post: post)
  end
end
