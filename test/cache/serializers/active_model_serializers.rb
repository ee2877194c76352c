# frozen_string_literal: true

require_relative "library"
require "action_controller"
require "active_model_serializers"

class CommentSerializer < ActiveModel::Serializer
  attributes :body
end

class PostSerializer < ActiveModel::Serializer
  attributes :id, :title
  has_many :comments
  attribute(:author) { object.author.name }
end

show do |computed|
  Castellan.cache.fetch(%w[posts index], depends_on: [Post, Author, Comment]) do
    computed.call
    posts = Post.includes(:author, :comments).order(:id)
    ActiveModelSerializers::SerializableResource.new(posts, each_serializer: PostSerializer, adapter: :attributes).to_json
  end
end
