# frozen_string_literal: true

# Declares the JSON of `to_json(include: %i[author comments])`.
class PostResource < Castellan::Resource
  format :nested
  model Post
  attributes :author_id, :title, :body, :published_at, :created_at, :updated_at
  belongs_to :author
  has_many :comments
end
