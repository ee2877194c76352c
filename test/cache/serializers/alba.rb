# frozen_string_literal: true

require_relative "library"
require "alba"

class CommentSerializer
  include Alba::Resource

  attributes :body
end

class PostSerializer
  include Alba::Resource

  attributes :id, :title
  many :comments, resource: CommentSerializer
  attribute(:author) { |post| post.author.name }
end

show do |computed|
  Castellan.cache.fetch(%w[posts index], depends_on: [Post, Author, Comment]) do
    computed.call
    PostSerializer.new(Post.includes(:author, :comments).order(:id)).serialize
  end
end
