# frozen_string_literal: true

module Posts
  # The newest posts of all authors: the same for everybody, so one cached body serves all and any cache may keep it.
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
