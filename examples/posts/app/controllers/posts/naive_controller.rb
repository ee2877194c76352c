# frozen_string_literal: true

module Posts
  # The original: converts models to hashes and to JSON for every request.
  class NaiveController < ApplicationController
    def index
      posts = current_user.posts.published
      render json: posts.to_json(include: %i[author comments])
    end
  end
end
