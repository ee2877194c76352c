# frozen_string_literal: true

module Posts
  # A smaller body without comments; clients request them at `/posts/:id`.
  class SummaryController < ApplicationController
    def index
      keep_private
      posts = current_user.posts.listed.preload(:author)
      version = PostsVersion.without_comments(posts)
      render json: Rails.cache.fetch(["posts/summary", current_user.id], version: version, expires_in: 12.hours) {
        posts.to_json(include: :author)
      }
    end
  end
end
