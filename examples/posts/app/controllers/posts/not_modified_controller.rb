# frozen_string_literal: true

module Posts
  # Corrected: the validator contains the count and the latest change of everything in the body.
  class NotModifiedController < ApplicationController
    def index
      posts = current_user.posts.published
      return unless stale?(etag: [current_user.id, PostsVersion.of(posts)])

      render json: posts.to_json(include: %i[author comments])
    end
  end
end
