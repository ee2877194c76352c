# frozen_string_literal: true

module Posts
  # As published, and wrong: `map` returns the results of the assignments, so the response is an array of
  # booleans.
  class FragmentToldController < ApplicationController
    def index
      posts = current_user.posts.listed.preload(:author)
      keys = posts.map { |post| [post, post.author] }
      hashes = Rails.cache.fetch_multi(*keys, namespace: "posts/fragment", expires_in: 12.hours) do |post, _author|
        post.as_json(include: :author)
      end
      render json: hashes.map { |(post, _author), hash| hash["read_before"] = current_user.read_before?(post) }
    end
  end
end
