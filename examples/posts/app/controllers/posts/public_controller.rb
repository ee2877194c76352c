# frozen_string_literal: true

module Posts
  # The newest posts of all authors. They are the same for all viewers, so the response is public, and all
  # viewers
  # share one cached body.
  class PublicController < ApplicationController
    skip_before_action :authenticate

    def index
      expires_in 0, public: true, must_revalidate: true
      posts = Post.front_page
      render json: Rails.cache.fetch("posts/public", version: PostsVersion.of(posts), expires_in: 12.hours) {
        posts.to_json(include: %i[author comments])
      }
    end
  end
end
