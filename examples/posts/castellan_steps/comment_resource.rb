# frozen_string_literal: true

class CommentResource < Castellan::Resource
  format :nested
  model Comment
  attributes :post_id, :user_id, :body, :created_at, :updated_at
end
