# frozen_string_literal: true

module Posts
  # As published, and wrong: the newest post stays the same when a post is deleted, a comment is added, or an
  # author is renamed.
  class NotModifiedToldController < ApplicationController
    def index
      posts = current_user.posts.published
      render json: posts.to_json(include: %i[author comments]) if stale?(last_modified: posts.latest.updated_at)
    end
  end
end
