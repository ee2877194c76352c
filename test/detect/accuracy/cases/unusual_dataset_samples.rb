# frozen_string_literal: true

require_relative "../datasets"

# Less common code with Sequel.
module Accuracy
  module Datasets
    module UnusualDatasetSamples
      extend Samples

      GROUP = "Sequel"

      kind "unusual associations"
      sample "each ignores eager" do
        User.eager(:posts).each { |user| user.posts.size } #=> n_plus_one 5 User#posts
      end
      sample "the owner is given" do
        User.all.each { |user| Post.where(user: user).count } #=> n_plus_one 5 User#posts
      end
      sample "a foreign key is given" do
        User.all.each { |user| Post.where(user_id: user.id).all } #=> n_plus_one 5 User#posts
      end
      sample "several titles of one user" do
        user = User.all.first
        %w[a b c].each { |title| user.posts_dataset.first(title: title) } #=> n_plus_one 3
      end
      sample "the siblings of each" do
        Post.limit(4).all.each do |post|
          post.user.posts_dataset.count #=> n_plus_one 4 Post#user, n_plus_one 4 User#posts
        end
      end
      sample "two siblings" do
        User.limit(2).all.each { |user| [user.posts, user.tokens] } #=> n_plus_one 2 User#posts, n_plus_one 2 User#tokens
      end
      sample "each of a dataset of an association" do
        User.all.each { |user| user.posts_dataset.each { |post| post.title } } #=> n_plus_one 5 User#posts
      end
      sample "eager in each turn" do
        User.all.each do |user|
          user.posts_dataset.eager(:comments).all.each { |post| post.comments.size } #=> n_plus_one 5 User#posts
        end
      end
      sample "association_join" do
        User.association_join(:posts).select_all(:users).distinct.all
      end
      sample "pk lookup through many_to_one, cached by hand" do
        users = User.as_hash
        Post.all.map { |post| users[post.user_id].name }
      end
      sample "grouped in Ruby" do
        Comment.all.group_by { |comment| comment.post.title } #=> n_plus_one 30 Comment#post
      end
      sample "lateral: one statement" do
        DB[:users].join(:posts, user_id: :id).select_group(:user_id).select_append { count.function.* }.all
      end
      sample "rows, not records" do
        DB[:users].each { |row| DB[:posts].where(user_id: row[:id]).count } #=> n_plus_one 5
      end
      sample "rows, then one list" do
        rows = DB[:users].all
        DB[:posts].where(user_id: rows.map { |row| row[:id] }).as_hash(:user_id)
      end
      sample "slices of rows" do
        DB[:comments].select_map(:id).each_slice(7) { |ids| DB[:comments].where(id: ids).select_map(:body) }
      end
      sample "ranges of keys" do
        (0..4).each { |number| Comment.where(id: number * 7 + 1..number * 7 + 7).all }
      end
      sample "dates, one sum each" do
        (1..3).each do |day|
          Post.where(updated_at: Time.utc(2020, 1, day)..Time.utc(2020, 1, day + 1)).count #=> n_plus_one 3
        end
      end

      kind "unusual writes"
      sample "an association is added to", writes: true do
        User.all.each { |user| user.add_token(secret: "new #{user.id}") } #=> write_loop 5
      end
      sample "where and update", writes: true do
        User.select_map(:id).each { |id| Token.where(user_id: id).update(on_behalf: true) } #=> write_loop 5
      end
      sample "where and delete", writes: true do
        [1, 2, 3].each do |id|
          DB[:posts_tags].where(post_id: id).delete #=> write_loop 3
        end
      end
      sample "insert_conflict", writes: true do
        [1, 2, 3].each { |id| DB[:tags].insert_conflict.insert(id: id, name: "up") } #=> write_loop 3
      end
      sample "import in slices", writes: true do
        (1..10).each_slice(4) { |ids| DB[:tags].import([:name], ids.map { |id| ["tag #{id}"] }) }
      end
      sample "destroyed one by one", writes: true do
        Token.all.each(&:destroy) #=> write_loop 10
      end
      sample "saved in a page", writes: true do
        Tag.order(:id).paged_each(rows_per_fetch: 7) { |tag| tag.update(name: "new") } #=> write_loop 20
      end
      sample "log from two places", writes: true do
        DB[:tags].insert(name: "begin")
        DB[:tags].insert(name: "end")
      end

      kind "unusual statements"
      sample "db.fetch with a block" do
        [1, 2, 3].each do |id|
          DB.fetch("SELECT * FROM posts WHERE user_id = #{id}") { |row| row[:title] } #=> n_plus_one 3
        end
      end
      sample "a common table expression" do
        [1, 2].each do |id|
          DB[:mine].with(:mine, DB[:posts].where(user_id: id)).all #=> n_plus_one 2
        end
      end
      sample "a union" do
        [1, 2, 3].each do |id|
          tokens = DB[:tokens].where(user_id: id).select(:id)
          DB[:posts].where(user_id: id).select(:id).union(tokens).all #=> n_plus_one 3
        end
      end
      sample "exists" do
        %w[a b c].select { |name| Tag.where(name: name).any? } #=> n_plus_one 3
      end
      sample "LIKE" do
        %w[a b c].each { |name| Tag.where(Sequel.like(:name, "#{name}%")).all } #=> n_plus_one 3
      end
      sample "IS NULL" do
        3.times { Tag.where(name: nil).all } #=> duplicate 3
      end
      sample "random" do
        3.times { Tag.order { random.function }.first }
      end
      sample "two tables in turns" do
        2.times do |number|
          User.first(name: "user #{number}") #=> n_plus_one 2
          Tag.first(name: "tag #{number}") #=> n_plus_one 2
        end
      end
      sample "threads that walk differently" do
        users = User.all
        posts = Thread.new { users.each(&:posts) } #=> n_plus_one 5 User#posts
        tokens = Thread.new { users.each(&:tokens) } #=> n_plus_one 5 User#tokens
        [posts, tokens].each(&:join)
      end
      sample "server-side paging with a filter" do
        last = 0
        while (rows = DB[:comments].where { id > last }.where(author_id: 1).order(:id).limit(2).all).any?
          last = rows.last[:id]
        end
      end
    end
  end
end
