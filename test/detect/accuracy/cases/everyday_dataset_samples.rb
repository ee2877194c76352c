# frozen_string_literal: true

require "delegate"
require_relative "../datasets"

# Everyday application code with Sequel.
module Accuracy
  module Datasets
    module EverydayDatasetSamples
      extend Samples

      GROUP = "Sequel"

      class PostDecorator < SimpleDelegator
        def byline = "#{title} by #{user.name}"
      end

      class UserSerializer
        def initialize(user)
          @user = user
        end

        def to_h = { name: @user.name, posts: @user.posts.map(&:title) }
      end

      kind "layers"
      sample "a serializer of one's own" do
        User.all.map { |user| UserSerializer.new(user).to_h } #=> n_plus_one 5 User#posts elsewhere
      end
      sample "a serializer of one's own, eager" do
        User.eager(:posts).all.map { |user| UserSerializer.new(user).to_h }
      end
      sample "a decorator" do
        Post.all.map { |post| PostDecorator.new(post).byline } #=> n_plus_one 10 Post#user elsewhere
      end
      sample "sorted by something of another" do
        Post.all.sort_by { |post| post.user.name } #=> n_plus_one 10 Post#user
      end
      sample "a permission asked for each post" do
        user = User.first
        Post.all.select { user.tokens_dataset.where(on_behalf: false).any? } #=> duplicate 10
      end

      kind "eager loading"
      sample "eager_graph of two levels" do
        User.eager_graph(posts: :comments).all.each { |user| user.posts.each { |post| post.comments.map(&:body) } }
      end
      sample "eager_graph with a condition" do
        User.eager_graph(:posts).where(Sequel[:posts][:published] => true).all.each { |user| user.posts.map(&:title) }
      end
      sample "eager with a block" do
        User.eager(posts: proc { |posts| posts.where(published: true) }).all.each { |user| user.posts.map(&:title) }
      end
      sample "association_join, then walked" do
        User.association_join(:employee).select_all(:users).all.each do |user|
          user.employee.number #=> n_plus_one 5 User#employee
        end
      end
      sample "tactical eager loading" do
        TacticalUser.all.each { |user| user.posts.each { |post| post.comments.map(&:body) } }
      end
      sample "tactical eager loading, one by one" do
        TacticalUser.each { |user| user.posts.size } #=> n_plus_one 5 TacticalUser#posts
      end
      sample "tactical eager loading, but a dataset" do
        TacticalUser.all.each { |user| user.posts_dataset.count } #=> n_plus_one 5 TacticalUser#posts
      end
      sample "many_through_many" do
        Reader.all.each { |reader| reader.tags.map(&:name) } #=> n_plus_one 5 Reader#tags
      end
      sample "many_through_many, eager" do
        Reader.eager(:tags).all.each { |reader| reader.tags.map(&:name) }
      end
      sample "what is kept for good" do
        User.all.map { |user| Country.first(name: user.name)&.name } #=> n_plus_one 5
      end
      sample "what is kept for good, by its key" do
        User.all.map { |user| Country[user.id] }
      end
      sample "reloaded" do
        user = User.first
        3.times { user.posts(reload: true) } #=> duplicate 3
      end
      sample "set by hand" do
        users = User.all
        posts = Post.where(user_id: users.map(&:id)).to_hash_groups(:user_id)
        users.each { |user| user.associations[:posts] = posts.fetch(user.id, []) }
        users.map { |user| user.posts.size }
      end

      kind "datasets of associations"
      sample "the first by its title" do
        User.all.map { |user| user.posts_dataset.first(title: "title 1 0") } #=> n_plus_one 5 User#posts
      end
      sample "how many are published" do
        User.all.map { |user| user.posts_dataset.where(published: true).count } #=> n_plus_one 5 User#posts
      end
      sample "the greatest" do
        User.all.map { |user| user.posts_dataset.max(:id) } #=> n_plus_one 5 User#posts
      end
      sample "titles" do
        User.all.map { |user| user.posts_dataset.select_map(:title) } #=> n_plus_one 5 User#posts
      end
      sample "is there none" do
        User.all.select { |user| user.posts_dataset.empty? } #=> n_plus_one 5 User#posts
      end
      sample "a few of each" do
        User.all.map { |user| user.posts_dataset.reverse(:id).limit(2).all } #=> n_plus_one 5 User#posts
      end
      sample "how many, of records that come one by one", wrong: "no association: records of each are no load" do
        User.each { |user| user.posts_dataset.count } #=> n_plus_one 5 User#posts
      end
      sample "two levels that come one by one", wrong: "no association: records of each are no load" do
        User.each do |user|
          Post.where(user_id: user.id).each do |post| #=> n_plus_one 5 User#posts
            post.comments_dataset.count #=> n_plus_one 10 Post#comments
          end
        end
      end
      sample "the lists of two that were found apart" do
        one = User.order(:id).first
        other = User.reverse(:id).first
        [one.posts, other.posts]
      end
      sample "the next of each" do
        Post.order(:id).all.map { |post| Post.where { id > post.id }.order(:id).first } #=> n_plus_one 10
      end
      sample "updates of slices", writes: true do
        Tag.select_map(:id).each_slice(5) { |ids| Tag.where(id: ids).update(name: "other") }
      end
      sample "a scope of the model" do
        User.all.map { |user| user.posts_dataset.published.all } #=> n_plus_one 5 User#posts
      end
      sample "two calculations on one line" do
        User.all.map do |user|
          [user.posts_dataset.where(published: true).count, user.posts_dataset.count] #=> n_plus_one 5 User#posts, n_plus_one 5 User#posts
        end
      end

      kind "look-ups"
      sample "first(id:)" do
        User.select_map(:id).each { |id| User.first(id: id) } #=> n_plus_one 5
      end
      sample "where and first" do
        %w[a b c].each { |name| Tag.where(name: name).first } #=> n_plus_one 3
      end
      sample "get of a column" do
        User.select_map(:id).map { |id| Employee.where(user_id: id).get(:number) } #=> n_plus_one 5
      end
      sample "find" do
        %w[a b c].map { |name| Tag.find(name: name) } #=> n_plus_one 3
      end
      sample "find_or_new" do
        %w[a b c].map { |name| Tag.find(name: name) || Tag.new(name: name) } #=> n_plus_one 3
      end
      sample "a bound variable" do
        dataset = DB[:users].where(id: :$id)
        [1, 2, 3].map { |id| dataset.call(:first, id: id) } #=> n_plus_one 3
      end
      sample "with_sql_first" do
        [1, 2, 3].map { |id| DB["SELECT * FROM users WHERE id = ?", id].first } #=> n_plus_one 3
      end
      sample "single_value" do
        [1, 2, 3].map { |id| DB[:posts].where(user_id: id).select { count.function.* }.single_value } #=> n_plus_one 3
      end
      sample "refreshed" do
        User.all.each(&:refresh) #=> n_plus_one 5
      end
      sample "a Hash that finds" do
        users = Hash.new { |known, id| known[id] = User[id] } #=> n_plus_one 5
        Post.all.map { |post| users[post.user_id].name }
      end
      sample "filled at once" do
        users = User.as_hash(:id)
        Post.all.map { |post| users[post.user_id].name }
      end
      sample "a dashboard" do
        { published: Post.where(published: true).count, drafts: Post.where(published: false).count, users: User.count }
      end
      sample "does one exist, in threads" do
        %w[a b c].map { |name| Thread.new { Tag.where(name: name).empty? } }.map(&:value) #=> n_plus_one 3
      end
      sample "the same in threads" do
        Array.new(3) { Thread.new { Tag.where(name: "a").empty? } }.map(&:value) #=> duplicate 3
      end

      kind "lists and pages"
      sample "pages of the pagination extension" do
        Comment.dataset.extension(:pagination).order(:id).each_page(7) { |page| page.map(&:body) }
      end
      sample "slices, each of them read one by one" do
        Comment.select_map(:id).each_slice(5) { |ids| Comment.where(id: ids).each { |comment| comment.body } }
      end
      sample "slices of rows, each of them read one by one" do
        DB[:comments].select_map(:id).each_slice(5) { |ids| DB[:comments].where(id: ids).each { |row| row[:body] } }
      end
      sample "slices while reading" do
        User.order(:id).each_slice(2) { |users| Post.where(user_id: users.map(&:id)).all }
      end
      sample "paged_each, eager" do
        Comment.order(:id).eager(:post).paged_each(rows_per_fetch: 7) { |comment| comment.body }
      end
      sample "paged_each of rows" do
        DB[:comments].order(:id).paged_each(rows_per_fetch: 7) { |row| row[:body] }
      end
      sample "groups of keys" do
        Post.select_map(:id).each_slice(4) { |ids| Comment.where(post_id: ids).group_and_count(:post_id).all }
      end

      kind "everyday writes"
      sample "insert, row by row", writes: true do
        3.times { |number| DB[:tags].insert(name: "new #{number}") } #=> write_loop 3
      end
      sample "multi_insert", writes: true do
        DB[:tags].multi_insert(Array.new(3) { |number| { name: "new #{number}" } })
      end
      sample "import, a few times", writes: true do
        3.times { |number| DB[:tags].import([:name], [["a #{number}"], ["b #{number}"]]) }
      end
      sample "insert_conflict of many", writes: true do
        2.times { |number| DB[:tags].insert_conflict.multi_insert([{ id: 900 + number, name: "a" }, { id: 950 + number, name: "b" }]) }
      end
      sample "prepared insert", writes: true do
        statement = DB[:tags].prepare(:insert, :"insert_tag_#{DB.object_id}", name: :$name)
        3.times { |number| statement.call(name: "new #{number}") } #=> write_loop 3
      end
      sample "update_or_create", writes: true do
        %w[x y z].each do |name|
          tag = Tag.first(name: name) || Tag.new #=> n_plus_one 3
          tag.update(name: name) #=> write_loop 3
        end
      end
      sample "each in its transaction", writes: true do
        Tag.limit(3).all.each { |tag| DB.transaction { tag.update(name: "other") } } #=> write_loop 3
      end
      sample "all in one transaction", writes: true do
        DB.transaction { Tag.limit(3).all.each { |tag| tag.update(name: "other") } } #=> write_loop 3
      end
      sample "nothing changed", writes: true do
        Tag.limit(3).all.each(&:save_changes)
      end
      sample "remove_all of each", writes: true do
        User.all.each(&:remove_all_tokens) #=> write_loop 5
      end
      sample "counted up", writes: true do
        Employee.select_map(:id).each { |id| Employee.where(id: id).update(number: Sequel[:number] + 1) } #=> write_loop 5
      end
      sample "an import that looks up and writes", writes: true do
        [["user 1", 7], ["user 2", 8], ["user 3", 9]].each do |name, number|
          user = User.first!(name: name) #=> n_plus_one 3
          Employee.where(user_id: user.id).update(number: number) #=> write_loop 3
        end
      end

      kind "statements as people write them"
      sample "without a space around the sign" do
        [1, 2, 3].each { |id| DB["SELECT name FROM users WHERE id=#{id}"].first } #=> n_plus_one 3
      end
      sample "pages by two columns" do
        last = [0, 0]
        pages = Comment.order(:post_id, :id).limit(7)
        while (rows = pages.where(Sequel.lit("(post_id, id) > (?, ?)", *last)).select_map(%i[post_id id])).any?
          last = rows.last
        end
      end
      sample "a list of each that others have as well, while they are read", wrong: "missed: lists that change are batches" do
        User.order(:id).each { |user| Tag.where(id: [(user.id % 3) + 1, (user.id % 2) + 4]).all } #=> n_plus_one 5
      end
      sample "lists that have nothing in common" do
        Comment.select_order_map(:id).each_slice(3) { |ids| Comment.where(id: ids).all }
      end

      kind "ways around an association"
      sample "a condition on an association that another is declared with" do
        User.order(:id).all.each { |user| user.posts_dataset.where(published: true).all } #=> n_plus_one 5 User#posts
      end
      sample "the first level by a JOIN, the second not" do
        User.eager_graph(:posts).all.each do |user|
          user.posts.each { |post| post.comments.size } #=> n_plus_one 10 Post#comments
        end
      end
      sample "the record whose key a record holds" do
        Comment.order(:id).all.each { |comment| User[comment.author_id] } #=> n_plus_one 30
      end
      sample "a page after the other, one record at a time" do
        Employee.order(:id).paged_each(rows_per_fetch: 2) { |employee| employee.user } #=> n_plus_one 5 Employee#user
      end
    end
  end
end
