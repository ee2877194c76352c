# frozen_string_literal: true

module Posts
  # The same, with a single query for the viewer's attribute of all posts.
  class FragmentBatchedController < ApplicationController
    def index
      posts = current_user.posts.listed.preload(:author)
      keys = posts.map { |post| [post, post.author] }
      hashes = Rails.cache.fetch_multi(*keys, namespace: "posts/fragment", expires_in: 12.hours) do |post, _author|
        post.as_json(include: :author)
      end
      read_ids = current_user.readings.where(post: posts).pluck(:post_id).to_set
      render json: hashes.map { |(post, _author), hash| hash.merge("read_before" => read_ids.include?(post.id)) }
    end
  end
end
