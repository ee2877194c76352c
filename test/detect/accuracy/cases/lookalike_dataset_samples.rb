# frozen_string_literal: true

require_relative "../datasets"

# Correct code whose queries look like repetition, each beside the repetition that it resembles.
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

      kind "models that share a table"
      sample "subclasses counted" do
        [Dog, Cat].map(&:count)
      end
      sample "subclasses listed" do
        [Dog, Cat].flat_map { |animal| animal.order(:id).all }
      end
      sample "a subclass for each owner" do
        User.select_map(:id).each do |id|
          Dog.where(user_id: id).count #=> n_plus_one 5
        end
      end

      kind "writes of a few rows at a time"
      sample "deleted until none is left", writes: true do
        loop { break if Comment.where(id: Comment.select(:id).limit(12)).delete.zero? }
      end
      sample "one of each kind", writes: true do
        %w[body read new].each do |body|
          Comment.where(id: Comment.where(body: body).select(:id).limit(1)).delete #=> write_loop 3
        end
      end
      sample "a few of each owner's", writes: true do
        [1, 2, 3].each do |post_id|
          Comment.where(id: Comment.where(post_id: post_id).select(:id).limit(1)).delete #=> write_loop 3
        end
      end

      kind "attempts"
      sample "a stale record, read and written again", writes: true do
        attempts = 0
        begin
          attempts += 1
          sheet = Sheet[1]
          DB[:sheets].where(id: 1).update(lock_version: Sequel[:lock_version] + 1) if attempts == 1
          sheet.update(title: "attempt #{attempts}")
        rescue Sequel::NoExistingObject
          retry
        end
      end
      sample "records with versions, one by one", writes: true do
        Sheet.all.each do |sheet|
          sheet.update(title: "new") #=> write_loop 3
        end
      end

      sample "one record with a version, changed again and again", writes: true, wrong: "missed: retries look alike" do
        (1..5).each do |number|
          sheet = Sheet[1]
          sheet.update(title: "number #{number}") #=> write_loop 5
        end
      end

      sample "an insert that the database refuses, tried again", writes: true do
        id = Tag.max(:id)
        begin
          Tag.first(name: "taken")
          DB.transaction(savepoint: true) { DB[:tags].insert(id: id, name: "taken") }
        rescue Sequel::UniqueConstraintViolation
          id += 1
          retry
        end
      end

      sample "rows of which one is enough, left by an exception" do
        (1..5).each do |id|
          Post.where(user_id: id).each { raise KeyError if id.odd? } #=> n_plus_one 5
        rescue KeyError
          nil
        end
      end

      kind "trees"
      sample "eager by levels" do
        Category.where(parent_id: nil).eager(children: { children: :children }).all
      end
      sample "level by level" do
        level = Category.where(parent_id: nil).all
        level = Category.where(parent_id: level.map(&:id)).all until level.empty?
      end
      sample "a list of a tree's keys for each of other records" do
        lists = [[1, 2, 3], [4], [5, 6], [7, 8, 9, 10], [11]]
        User.all.zip(lists) do |_user, list|
          Category.where(id: list).all #=> n_plus_one 5
        end
      end
      sample "children of each", wrong: "missed: lists that change are batches" do
        Category.select_map(:id).each do |id|
          Category.where(parent_id: [id]).all #=> n_plus_one 7
        end
      end
    end
  end
end
