# frozen_string_literal: true

module Posts
  # As told, and wrong: the newest post knows nothing of a post that was deleted, of comments, or of an author's new name.
  class NotModifiedToldController < ApplicationController
    def index
      posts = current_user.posts.published
      render json: posts.to_json(include: %i[author comments]) if stale?(last_modified: posts.latest.updated_at)
    end
  end
end
