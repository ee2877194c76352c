# frozen_string_literal: true

require_relative "../records"

# Correct code whose queries look like repetition, each beside the repetition that it resembles.
module Accuracy
  module Records
    module LookalikeRecordSamples
      extend Samples

      GROUP = "ActiveRecord"

      kind "preloads of batches"
      sample "each batch belongs to one owner" do
        Post.preload(:user).find_each(batch_size: 2) { |post| post.user.name }
      end
      sample "each batch has the same owner" do
        Employee.preload(:office).find_each(batch_size: 2) { |employee| employee.office.name }
      end
      sample "two batches with the same owner" do
        Employee.preload(:office).find_each(batch_size: 3) { |employee| employee.office.name }
      end
      sample "in_batches, on lines of their own" do
        Employee.in_batches(of: 2) do |batch|
          batch.preload(:office, user: %i[employee posts]).each do |employee|
            employee.office.name
            employee.user.posts.map(&:title)
          end
        end
      end
      sample "several ways to one table" do
        Post.in_batches(of: 4) do |batch|
          batch.preload(:user, comments: :author).each do |post|
            post.user.name
            post.comments.map { |comment| comment.author.name }
          end
        end
      end
      sample "slices, the last of one id" do
        Post.ids.each_slice(3) do |ids|
          Post.where(id: ids).preload(:user, comments: :author).each { |post| post.comments.map { |comment| comment.author.name } }
        end
      end
      sample "pages by the last id" do
        last = 0
        until (posts = Post.where("id > ?", last).order(:id).limit(2).preload(:user).to_a).empty?
          last = posts.map { |post| [post.user.name, post.id] }.last.last
        end
      end
      sample "owners of a batch, by hand" do
        Comment.find_in_batches(batch_size: 4) do |comments|
          authors = User.where(id: comments.map(&:author_id)).index_by(&:id)
          comments.each { |comment| authors.fetch(comment.author_id).name }
        end
      end
      sample "a part of a batch, by hand, for each record" do
        Comment.find_each(batch_size: 4) do |comment|
          User.where(id: comment.author_id).to_a #=> n_plus_one 30
        end
      end
      sample "the same list in each batch" do
        Comment.find_in_batches(batch_size: 4) do |comments|
          offices = Office.all.to_a #=> duplicate 8
          comments.each { |comment| offices.include?(comment) }
        end
      end
      sample "a page, and a look-up for each of its records" do
        Post.where("id > ?", 0).where(published: true).order(:id).limit(2).each do |post|
          User.where(id: post.user_id).to_a #=> n_plus_one 2
        end
      end
      sample "slices, and a look-up for each of their records" do
        User.ids.each_slice(2) do |ids|
          User.where(id: ids).each do |user|
            Post.where(user_id: user.id).to_a #=> n_plus_one 5 User#posts
          end
        end
      end

      sample "children of each, by hand" do
        Category.all.each { |category| Category.where(parent_id: category.id).to_a } #=> n_plus_one 7 Category#children
      end
      sample "children of each, by hand, in threads" do
        pool = Base.connection_pool
        apart = ->(&work) { Thread.new { pool.with_connection(&work) } }
        Category.all.map { |one| apart.call { Category.where(parent_id: one.id).to_a } }.each(&:join) #=> n_plus_one 7 Category#children
      end

      kind "several scopes on a line"
      sample "two states of one model" do
        { lent: Book.lent.count, there: Book.there.count }
      end
      sample "two states of one model, remembered, and asked for on a condition" do
        @counts ||= [Book.lent.count, Book.there.count] if Book.name
      end
      sample "two states of one model, listed" do
        [Book.lent.to_a, Book.there.to_a]
      end
      sample "two states in a loop" do
        %i[lent there].map do |state|
          Book.where(state: state).to_a #=> n_plus_one 2
        end
      end

      sample "one of several states for each of a few" do
        Shelf.limit(3).to_a.each do |shelf|
          Book.lent.find_by(shelf_id: shelf.id) || Book.there.find_by(shelf_id: shelf.id) || Book.there.first #=> n_plus_one 3 Shelf#books
        end
      end

      kind "one load that leads to a table in several ways"
      sample "owners of posts and authors of comments" do
        Post.preload(:user, comments: :author).each { |post| [post.user.name, post.comments.map { |comment| comment.author.name }] }
      end
      sample "the same, of one owner" do
        Post.where(user_id: User.first.id).preload(:user, comments: :author).each { |post| post.comments.map(&:author) }
      end
      sample "the same list twice by hand" do
        2.times do
          User.where(id: [1, 2]).to_a #=> duplicate 2
        end
      end

      kind "models that share a table"
      sample "subclasses counted" do
        [Dog, Cat].map(&:count)
      end
      sample "subclasses listed" do
        [Dog, Cat].flat_map { |animal| animal.order(:id).to_a }
      end
      sample "subclasses, of one owner" do
        owner = User.first.id
        [Dog, Cat].map { |animal| animal.where(user_id: owner).count }
      end
      sample "a subclass for each owner" do
        User.ids.each do |id|
          Dog.where(user_id: id).count #=> n_plus_one 5
        end
      end
      sample "kinds by name" do
        %w[Dog Cat].map do |kind|
          Animal.where(type: kind.dup).pluck(:id) #=> n_plus_one 2
        end
      end

      kind "writes of a few rows at a time"
      sample "deleted until none is left", writes: true do
        loop { break if Comment.where(id: Comment.limit(12)).delete_all.zero? }
      end
      sample "deleted by a limited relation", writes: true do
        loop { break if Comment.where(body: "body").limit(12).delete_all.zero? }
      end
      sample "updated until none is left", writes: true do
        loop { break if Comment.where(body: "body").limit(12).update_all(body: "read").zero? }
      end
      sample "a few of each owner's", writes: true do
        Post.limit(3).to_a.each do |post|
          post.comments.limit(1).delete_all #=> write_loop 3
        end
      end
      sample "a few of one owner's, until none is left", writes: true do
        post = Post.first
        loop { break if post.comments.limit(2).delete_all.zero? }
      end
      sample "one of each kind", writes: true do
        %w[body read new].each do |body|
          Comment.where(body: body.dup).limit(1).delete_all #=> write_loop 3
        end
      end
      sample "one that is named as each record is", writes: true do
        User.all.each do |user|
          Comment.where(body: user.name).limit(1).update_all(body: "read") #=> write_loop 5
        end
      end
      sample "what is set changes, and not what is chosen", writes: true do
        count = 0
        loop { break if Comment.where(author_id: 1).limit(2).update_all(author_id: 1000 + (count += 1)).zero? }
      end
      sample "copied from one table, with other columns each time", writes: true do
        [%w[body], %w[post_id], %w[post_id author_id], %w[author_id post_id]].each do |columns|
          values = columns.map { "NULL" }
          Base.connection.execute("INSERT INTO comments (#{columns.join(",")}) SELECT #{values.join(",")} FROM tags") #=> write_loop 4
        end
      end
      sample "copied from several tables", writes: true do
        %w[tags notes].each do |table|
          Base.connection.execute("INSERT INTO tags (name) SELECT 'copy' FROM #{table}")
        end
      end

      sample "destroyed with what depends on them", writes: true, wrong: "the larger loop of the dependents is named" do
        Card.insert_all(Library.ids.map { |id| { library_id: id } })
        Library.limit(3).each(&:destroy!) #=> write_loop 3, n_plus_one 3 Library#cards
      end

      kind "attempts"
      sample "a stale record, read and written again", writes: true do
        attempts = 0
        begin
          attempts += 1
          sheet = Sheet.find(1)
          Sheet.where(id: 1).update_all("lock_version = lock_version + 1") if attempts == 1
          sheet.update!(title: "attempt #{attempts}")
        rescue ActiveRecord::StaleObjectError
          retry
        end
      end
      sample "records with versions, beside one that is read each time", writes: true do
        Sheet.where.not(id: 1).to_a.each do |sheet|
          first = Sheet.find(1)
          sheet.update!(title: "after #{first.title}") #=> write_loop 2
        rescue ActiveRecord::StaleObjectError
          nil
        end
      end
      sample "records with versions, one by one", writes: true do
        Sheet.all.each do |sheet|
          sheet.update!(title: "new") #=> write_loop 3
        end
      end
      sample "an insert that the database refuses, tried again", writes: true do
        id = Tag.maximum(:id)
        begin
          Tag.find_by(name: "taken")
          Tag.transaction(requires_new: true) { Tag.create!(id: id, name: "taken") }
        rescue ActiveRecord::RecordNotUnique
          id += 1
          retry
        end
      end
      sample "several inserts, one of them refused", writes: true do
        taken = Tag.maximum(:id)
        (taken..taken + 3).each do |id|
          Tag.transaction(requires_new: true) { Tag.create!(id: id) } #=> write_loop 3
        rescue ActiveRecord::RecordNotUnique
          nil
        end
      end
      sample "inserts that are all refused", writes: true do
        (1..4).each do |id|
          Tag.transaction(requires_new: true) { Tag.create!(id: id) } #=> write_loop 4
        rescue ActiveRecord::RecordNotUnique
          nil
        end
      end
      sample "found and locked", writes: true do
        Post.find(1).with_lock { nil }
      end
      sample "each found and locked", writes: true do
        [1, 2, 3].each do |id|
          Post.lock.find(id) #=> n_plus_one 3
        end
      end
      sample "one record with a version, changed again and again", writes: true, wrong: "missed: retries look alike" do
        (1..5).each do |number|
          sheet = Sheet.find(1)
          sheet.update!(title: "#{sheet.title} #{number}") #=> write_loop 5
        end
      end

      kind "trees"
      sample "children of children on a line" do
        root = Category.find_by(parent_id: nil)
        root.children.each { |child| child.children.to_a } #=> n_plus_one 3 Category#children
      end
      sample "preloaded by levels, as deep as it goes", writes: true do
        leaf = Category.last
        2.times { 2.times { Category.create!(parent: leaf) } and leaf = Category.last } #=> write_loop 4
        Category.where(parent_id: nil).preload(children: { children: { children: { children: :children } } }).to_a
      end
      sample "slices by hand of a tree's keys, at the start" do
        [[1, 2, 3], [4, 5], [6, 7], [8, 9]].each do |keys|
          Category.where(parent_id: keys).to_a #=> n_plus_one 4
        end
      end
      sample "parents of parents, preloaded" do
        Category.where.not(parent_id: [nil, 1]).preload(parent: { parent: :parent }).to_a
      end
      sample "a list of a tree's keys for each of other records" do
        lists = [[1, 2, 3], [4], [5, 6], [7, 8, 9, 10], [11, 12]]
        User.all.each_with_index do |_user, index|
          Category.where(id: lists[index]).to_a #=> n_plus_one 4
        end
      end
      sample "a list of a tree's keys for each of other keys" do
        lists = [[1, 2, 3], [4], [5, 6], [7, 8, 9, 10], [11, 12]]
        User.pluck(:id).zip(lists) do |_id, list|
          Category.where(parent_id: list).to_a #=> n_plus_one 4
        end
      end
      sample "a list of a tree's keys for each of its records" do
        lists = [[1, 2, 3], [4], [5, 6], [7, 8, 9, 10], [11, 12], [13, 14], [15, 16]]
        Category.all.to_a.zip(lists) do |_category, list|
          Category.where(parent_id: list).to_a #=> n_plus_one 6
        end
      end
      sample "a list of keys that becomes longer, after the records themselves", wrong: "missed: lists that change are batches" do
        Category.count
        Category.where(parent_id: nil).to_a
        [[1, 2, 3], [5, 6], [7, 8, 9, 10]].each do |list|
          Category.where(id: list).to_a #=> n_plus_one 3
        end
      end
    end
  end
end
