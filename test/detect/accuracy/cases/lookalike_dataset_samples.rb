# frozen_string_literal: true

require_relative "../datasets"

# Correct code whose statements look like repetition, each beside the repetition that it looks like.
module Accuracy
  module Datasets
    module LookalikeDatasetSamples
      extend Samples

      GROUP = "Sequel"

      kind "preloads of batches"
      sample "each slice belongs to one owner" do
        Post.select_order_map(:id).each_slice(2) do |ids|
          Post.where(id: ids).eager(:user).all.each { |post| post.user.name }
        end
      end
      sample "slices with the same lists" do
        User.select_order_map(:id).each_slice(2) do |ids|
          User.where(id: ids).eager(:manager, posts: %i[tags comments]).all.each { |user| [user.manager, user.posts.map(&:tags)] }
        end
      end
      sample "pages, eager loaded" do
        last = 0
        until (posts = Post.where { id > last }.order(:id).limit(2).eager(:user).all).empty?
          posts.each { |post| post.user.name }
          last = posts.last.id
        end
      end
      sample "slices, and a look-up for each of their records" do
        User.select_order_map(:id).each_slice(2) do |ids|
          User.where(id: ids).all.each do |user|
            Post.where(user_id: user.id).all #=> n_plus_one 5 User#posts
          end
        end
      end

      kind "one load that leads to a table in several ways"
      sample "owners of posts and authors of comments" do
        Post.eager(:user, comments: :author).all.each { |post| [post.user.name, post.comments.map { |comment| comment.author.name }] }
      end
      sample "the same, of one owner" do
        Post.where(user_id: User.get(:id)).eager(:user, comments: :author).all.each { |post| post.comments.map(&:author) }
      end
    end
  end
end
