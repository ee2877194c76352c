# frozen_string_literal: true

# The details that the summary omits. They are cached separately.
class PostsController < ApplicationController
  def show
    posts = current_user.posts.published.where(id: params[:id])
    keep_private
    render json: Rails.cache.fetch(["posts/show", current_user.id, params[:id]], version: PostsVersion.of(posts), expires_in: 12.hours) {
      posts.first!.to_json(include: %i[author comments])
    }
  end

  def destroy
    current_user.posts.find(params[:id]).destroy!
    head :no_content
  end
end
