# frozen_string_literal: true

module Posts
  # Like PublicController without a cache: config.ru puts Castellan::HTTPCache before Rails. A change of a
  # post,
  # comment or user purges the tag (config/initializers/castellan.rb).
  class SharedController < ApplicationController
    skip_before_action :authenticate

    def index
      expires_in 0, public: true, must_revalidate: true, "s-maxage": 600
      response.headers["Surrogate-Key"] = "posts"
      render json: Post.front_page.to_json(include: %i[author comments])
    end
  end
end
