# frozen_string_literal: true

require_relative "library"
require "jbuilder"

show do |computed|
  Castellan.cache.fetch(%w[posts index], depends_on: [Post, Author, Comment]) do
    computed.call
    Jbuilder.encode do |json|
      json.array!(Post.includes(:author, :comments).order(:id)) do |post|
        json.extract! post, :id, :title
        json.comments post.comments, :body
        json.author post.author.name
      end
    end
  end
end
