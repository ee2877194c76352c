# frozen_string_literal: true

module Posts
  # Corrected: adds the viewer's attribute to each cached post, with one query per post.
  class FragmentController < ApplicationController
    def index
      posts = current_user.posts.listed.preload(:author)
      keys = posts.map { |post| [post, post.author] }
      hashes = Rails.cache.fetch_multi(*keys, namespace: "posts/fragment", expires_in: 12.hours) do |post, _author|
        post.as_json(include: :author)
      end
      render json: hashes.map { |(post, _author), hash| hash.merge("read_before" => current_user.read_before?(post)) }
    end
  end
end
