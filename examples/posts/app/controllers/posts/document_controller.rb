# frozen_string_literal: true

module Posts
  # Caches the whole body. It depends on the viewer, so the viewer is part of the key and the response is
  # private.
  class DocumentController < ApplicationController
    def index
      keep_private
      posts = current_user.posts.published
      render json: Rails.cache.fetch(["posts/document", current_user.id], version: PostsVersion.of(posts), expires_in: 12.hours) {
        posts.to_json(include: %i[author comments])
      }
    end
  end
end
