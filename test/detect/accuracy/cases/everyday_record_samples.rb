# frozen_string_literal: true

require "delegate"
require "active_support/cache"
require_relative "../records"

# Everyday application code: service layers, caches, jobs, imports and exports.
module Accuracy
  module Records
    module EverydayRecordSamples
      extend Samples

      GROUP = "ActiveRecord"

      # Written like a serializer gem.
      class UserSerializer
        def initialize(user)
          @user = user
        end

        def to_h = { name: @user.name, posts: posts }
        def posts = @user.posts.map { |post| { title: post.title } }
      end

      class PostDecorator < SimpleDelegator
        def byline = "#{title} by #{user.name}"
        def self.all(posts) = posts.map { |post| new(post) }
      end

      # Caches values that it found, but queries again for a missing one.
      class Settings
        def theme = @theme ||= Tag.find_by(name: "no such theme")
        def owner = @owner ||= User.find_by(name: "user 1")
      end

      Row = Struct.new(:user) do
        def posts_count = @posts_count ||= user.posts.count
      end

      # An authorization policy, called for each displayed object.
      class Policy
        def initialize(user)
          @user = user
        end

        def edit?(_post) = @user.tokens.where(on_behalf: false).exists?
      end

      # Written like a view template.
      class Builder
        def array(list) = list.map { |one| yield one }
      end

      kind "layers"
      sample "a serializer of one's own" do
        User.all.map { |user| UserSerializer.new(user).to_h } #=> n_plus_one 5 User#posts elsewhere
      end
      sample "a serializer of one's own, preloaded" do
        User.preload(:posts).map { |user| UserSerializer.new(user).to_h }
      end
      sample "a decorator" do
        PostDecorator.all(Post.all).map(&:byline) #=> n_plus_one 10 Post#user elsewhere
      end
      sample "a decorator, included" do
        PostDecorator.all(Post.includes(:user)).map(&:byline)
      end
      sample "a template of lists in lists" do
        json = Builder.new
        json.array(User.order(:id)) do |user|
          json.array(user.posts) do |post| #=> n_plus_one 5 User#posts elsewhere
            json.array(post.comments) { |comment| comment.body } #=> n_plus_one 10 Post#comments elsewhere
          end
        end
      end
      sample "a row of a report that keeps its count" do
        rows = User.all.map { |user| Row.new(user) }
        rows.map { |row| [row.posts_count, row.posts_count] } #=> n_plus_one 5 User#posts elsewhere
      end
      sample "a policy asked for each post" do
        policy = Policy.new(User.first)
        Post.all.select { |post| policy.edit?(post) } #=> duplicate 10 nil elsewhere
      end
      sample "a policy asked once" do
        policy = Policy.new(User.first)
        allowed = policy.edit?(nil)
        Post.all.select { allowed }
      end
      sample "a memo of nothing" do
        settings = Settings.new
        Array.new(3) { settings.theme } #=> duplicate 3 nil elsewhere
      end
      sample "a memo of something" do
        settings = Settings.new
        Array.new(3) { settings.owner }
      end
      sample "to_json with a method" do
        Post.all.to_json(methods: :author_name) #=> n_plus_one 10 Post#user elsewhere
      end
      sample "to_json with a method, preloaded" do
        Post.preload(:user).to_json(methods: :author_name)
      end
      sample "sorted by something of another" do
        Post.all.sort_by { |post| post.user.name } #=> n_plus_one 10 Post#user
      end
      sample "grouped by another" do
        Post.all.group_by(&:user) #=> n_plus_one 10 Post#user
      end
      sample "the last of each, and who wrote it" do
        Post.all.map do |post|
          last = post.comments.last #=> n_plus_one 10 Post#comments
          last.author.name #=> n_plus_one 10 Comment#author
        end
      end
      sample "an attachment and its file" do
        User.all.map do |user|
          user.employee.office.name #=> n_plus_one 5 User#employee, n_plus_one 5 Employee#office
        end
      end
      sample "an attachment and its file, included" do
        User.includes(employee: :office).map { |user| user.employee.office.name }
      end
      sample "has_one through what was preloaded" do
        User.preload(:employee).map { |user| [user.employee.number, user.office&.name] } #=> n_plus_one 5 User#office
      end
      sample "what polymorphic owners have" do
        Note.preload(:owner).each { |note| note.owner.notes.to_a } #=> n_plus_one 10 Post#notes, n_plus_one 5 User#notes
      end
      sample "what only one subclass has" do
        Animal.order(:id).each { |animal| animal.walks.to_a if animal.is_a?(Dog) } #=> n_plus_one 3 Dog#walks
      end
      sample "what only one subclass has, preloaded for it" do
        Dog.preload(:walks).each { |dog| dog.walks.to_a }
        Cat.all.map(&:id)
      end

      kind "conditions and eager loading"
      sample "includes with a where on it" do
        User.includes(:posts).where(posts: { published: true }).each { |user| user.posts.map(&:title) }
      end
      sample "left_joins and preload" do
        User.left_joins(:posts).preload(:posts).distinct.each { |user| user.posts.map(&:title) }
      end
      sample "a computed column" do
        counted = User.joins(:posts).group("users.id").select("users.*, COUNT(posts.id) AS number")
        counted.map { |user| [user.name, user.number] }
      end
      sample "preload of a scope" do
        User.preload(:published_posts).map { |user| user.published_posts.size }
      end
      sample "preloaded, then picked in Ruby" do
        User.preload(:posts).map { |user| user.posts.max_by(&:id)&.title }
      end
      sample "preloaded, then searched in the database" do
        User.preload(:posts).map { |user| user.posts.find_by(title: "title 1 0") } #=> n_plus_one 5 User#posts
      end
      sample "preloaded, then counted twice" do
        User.preload(:posts).map do |user|
          [user.posts.where(published: true).count, user.posts.count] #=> n_plus_one 5 User#posts, n_plus_one 5 User#posts
        end
      end
      sample "loaded into the association by hand, list by list" do
        users = User.order(:id).to_a
        posts = Post.where(user_id: users.map(&:id)).group_by(&:user_id)
        users.each { |user| user.association(:posts).target = posts[user.id] }
        users.map { |user| user.posts.to_a.size }
      end
      sample "the owner handed over" do
        User.first.posts.map { |post| post.user.name }
      end
      sample "a few of each" do
        User.all.map { |user| user.posts.order(id: :desc).limit(3).to_a } #=> n_plus_one 5 User#posts
      end
      sample "the version of a list of each" do
        User.all.map { |user| user.posts.cache_key_with_version } #=> n_plus_one 5 User#posts
      end
      sample "the newest change of each" do
        User.all.map { |user| user.posts.maximum(:updated_at) } #=> n_plus_one 5 User#posts
      end
      sample "a sum of what was preloaded" do
        User.preload(:posts).sum { |user| user.posts.sum(&:id) }
      end
      sample "the association reloaded" do
        user = User.first
        3.times do
          user.posts.reload.size #=> duplicate 3
        end
      end
      sample "two kinds of one table" do
        Comment.limit(4).order(:id).map do |comment|
          [comment.author, comment.post] #=> n_plus_one 4 Comment#author, n_plus_one 4 Comment#post
        end
      end

      kind "look-ups"
      sample "titles plucked for each" do
        User.all.map { |user| Post.where(user_id: user.id).pluck(:title) } #=> n_plus_one 5 User#posts
      end
      sample "a Hash that finds" do
        users = Hash.new { |known, id| known[id] = User.find(id) } #=> n_plus_one 5
        Post.all.map { |post| users[post.user_id].name }
      end
      sample "a Hash that was filled at once" do
        users = User.all.index_by(&:id)
        Post.all.map { |post| users[post.user_id].name }
      end
      sample "a chain from each id" do
        Comment.ids.each_slice(3).first(3).map(&:first).each do |id|
          comment = Comment.find(id) #=> n_plus_one 3
          comment.post.user.name #=> n_plus_one 3 Comment#post, n_plus_one 3 Post#user
        end
      end
      sample "does one exist, for each" do
        %w[a b c].reject { |secret| Token.exists?(secret: secret) } #=> n_plus_one 3
      end
      sample "which exist, at once" do
        %w[a b c] - Token.where(secret: %w[a b c]).pluck(:secret)
      end
      sample "sole" do
        ["user 1", "user 2", "user 3"].map { |name| User.find_sole_by(name: name) } #=> n_plus_one 3
      end
      sample "take" do
        [1, 2, 3].map { |number| Employee.where(number: number).take } #=> n_plus_one 3
      end
      sample "first_or_initialize" do
        %w[a b c].map { |name| Tag.where(name: name).first_or_initialize } #=> n_plus_one 3
      end
      sample "async_count in a loop" do
        User.ids.map { |id| Post.where(user_id: id).async_count }.map(&:value) #=> n_plus_one 5
      end
      sample "different questions, one each" do
        [User.count, Post.count, Comment.maximum(:id), Tag.minimum(:id), User.exists?(name: "user 1"), User.exists?(name: "user 2")]
      end
      sample "three figures of a dashboard" do
        { published: Post.where(published: true).count, drafts: Post.where(published: false).count }
      end
      sample "figures of each month" do
        (1..4).map { |month| Post.where("updated_at >= ?", Time.utc(2020, month)).count } #=> n_plus_one 4
      end
      sample "the next of each" do
        Post.order(:id).map { |post| Post.where("id > ?", post.id).order(:id).first } #=> n_plus_one 10
      end
      sample "the lists of two that were found apart" do
        ids = User.ids
        one = User.find(ids[0])
        other = User.find(ids[1])
        [one.posts.to_a, other.posts.to_a]
      end
      sample "three levels on one line" do
        User.all.map { |user| user.posts.map { |post| post.comments.map(&:body) } } #=> n_plus_one 5 User#posts, n_plus_one 10 Post#comments
      end
      sample "either of two" do
        User.all.select do |user|
          user.tokens.where(on_behalf: true).exists? || user.posts.any? #=> n_plus_one 5 User#tokens, n_plus_one 5 User#posts
        end
      end
      sample "is there one, and then all of them" do
        User.all.each do |user|
          next unless user.posts.any? #=> n_plus_one 5 User#posts

          user.posts.each(&:title) #=> n_plus_one 5 User#posts
        end
      end
      sample "is it one of each" do
        tag = Tag.first
        Post.all.map { |post| post.tags.include?(tag) } #=> n_plus_one 10 Post#tags
      end
      sample "all that came later" do
        User.all.map { |user| User.where("last_seen > ?", user.last_seen).count } #=> n_plus_one 5
      end
      sample "counts of a list of days" do
        (1..5).map { |day| Post.where(updated_at: Time.utc(2020, 1, day).all_day).count } #=> n_plus_one 5
      end
      sample "a tree, level by level, preloaded" do
        level = Category.where(parent_id: nil).to_a
        until level.empty?
          ActiveRecord::Associations::Preloader.new(records: level, associations: :children).call
          level = level.flat_map(&:children)
        end
      end
      sample "owners of batches" do
        Comment.find_in_batches(batch_size: 7) { |some| Post.where(id: some.map(&:post_id).uniq).index_by(&:id) }
      end
      sample "batches of one" do
        Book.find_each(batch_size: 1) { |book| book.title }
      end
      sample "select_value in a loop" do
        User.ids.map { |id| Base.connection.select_value("SELECT COUNT(*) FROM posts WHERE user_id = #{id}") } #=> n_plus_one 5
      end
      sample "up a tree, by an enumerator" do
        Enumerator.produce(Category.order(:id).last) { |one| one.parent || raise(StopIteration) }.to_a #=> n_plus_one 2 Category#parent
      end

      kind "caches"
      sample "a cache that is cold" do
        cache = ActiveSupport::Cache::MemoryStore.new
        User.all.map { |user| cache.fetch(["posts", user.id]) { user.posts.map(&:title) } } #=> n_plus_one 5 User#posts
      end
      sample "a cache that is warm" do
        cache = ActiveSupport::Cache::MemoryStore.new
        users = User.all.each { |user| cache.write(["posts", user.id], []) }
        users.map { |user| cache.fetch(["posts", user.id]) { user.posts.map(&:title) } }
      end
      sample "fetch_multi of what is missing" do
        cache = ActiveSupport::Cache::MemoryStore.new
        users = User.all.to_a
        posts = nil
        cache.fetch_multi(*users.map(&:id)) { |id| (posts ||= Post.where(user_id: users).group_by(&:user_id))[id].size }
      end
      sample "the query cache answers" do
        Base.cache { Array.new(3) { User.find_by(name: "user 1") } } #=> cached_repeat 2
      end
      sample "the query cache, past it" do
        Base.cache do
          3.times do
            Base.uncached { User.find_by(name: "user 1") } #=> duplicate 3
          end
        end
      end

      kind "jobs and exports"
      sample "find_each that walks" do
        User.find_each { |user| user.employee.number } #=> n_plus_one 5 User#employee
      end
      sample "find_each in small batches that walks" do
        Comment.find_each(batch_size: 7) do |comment|
          comment.post.title #=> n_plus_one 30 Comment#post
        end
      end
      sample "find_each, preloaded" do
        Comment.preload(:post, :author).find_each(batch_size: 7) { |comment| [comment.post.title, comment.author.name] }
      end
      sample "find_each within find_each" do
        User.find_each do |user|
          Post.where(user_id: user.id).find_each { |post| post.title } #=> n_plus_one 5 User#posts
        end
      end
      sample "lazily, as many as needed" do
        User.find_each.lazy.select { |user| user.posts.any? }.first(2) #=> n_plus_one 2 User#posts
      end
      sample "a file of lines" do
        lines = Enumerator.new do |out|
          Post.find_each(batch_size: 4) { |post| out << [post.title, post.user.name].join(",") } #=> n_plus_one 10 Post#user
        end
        lines.each_slice(3).map { |some| some.join("\n") }
      end
      sample "in_batches and update_all", writes: true do
        Tag.in_batches(of: 7).update_all(name: "other")
      end
      sample "in_batches and delete_all", writes: true do
        Comment.in_batches(of: 7).delete_all
      end
      sample "in_batches and pluck" do
        Comment.in_batches(of: 7).flat_map { |some| some.pluck(:body) }
      end
      sample "ids in batches, jobs for slices" do
        Comment.in_batches(of: 10) { |some| some.ids.each_slice(5) { |ids| Comment.where(id: ids).map(&:body) } }
      end
      sample "pages of an API, counted each time" do
        3.times do |page|
          Post.order(:id).limit(4).offset(page * 4).to_a
          Post.count #=> duplicate 3
        end
      end
      sample "each in its transaction", writes: true do
        Tag.limit(3).each do |tag|
          Tag.transaction { tag.update!(name: "other") } #=> write_loop 3
        end
      end
      sample "each locked", writes: true do
        User.limit(3).each do |user|
          user.with_lock { user.update!(name: "other") } #=> write_loop 3
        end
      end
      sample "touch", writes: true do
        Post.all.to_a.each(&:touch) #=> write_loop 10
      end
      sample "touch_all", writes: true do
        Post.touch_all
      end
      sample "increment_counter", writes: true do
        Post.ids.each { |id| Post.increment_counter(:comments_count, id) } #=> write_loop 10
      end
      sample "update_counters of all", writes: true do
        Post.update_counters(Post.ids, comments_count: 1)
      end
      sample "ids of some of each" do
        User.all.each do |user|
          user.posts.where(published: true).ids #=> n_plus_one 5 User#posts
        end
      end
      sample "find_or_create_by", writes: true do
        %w[x y z].each do |name|
          Tag.find_or_create_by!(name: name) #=> n_plus_one 3, write_loop 3
        end
      end
      sample "find_or_create_by of what is there", writes: true do
        Tag.insert_all(%w[x y z].map { |name| { name: name } })
        %w[x y z].each { |name| Tag.find_or_create_by!(name: name) } #=> n_plus_one 3
      end
      sample "insert, row by row", writes: true do
        3.times { |number| Tag.insert({ name: "new #{number}" }) } #=> write_loop 3
      end
      sample "delete_by", writes: true do
        Library.ids.each { |id| Card.delete_by(library_id: id) } #=> write_loop 4
      end
      sample "an import that looks up and writes", writes: true do
        [["user 1", 7], ["user 2", 8], ["user 3", 9]].each do |name, number|
          user = User.find_by!(name: name) #=> n_plus_one 3
          Employee.where(user_id: user.id).update_all(number: number) #=> write_loop 3
        end
      end
      sample "comments with their counters", writes: true do
        post = Post.first
        author = User.first
        3.times { Comment.create!(post: post, author: author, body: "new") } #=> write_loop 3
      end
      sample "added to a list", writes: true do
        post = Post.first
        Tag.limit(3).order(:id).to_a.each { |tag| post.tags << tag } #=> write_loop 3
      end
      sample "one of each kind", writes: true do
        user = User.create!(name: "new")
        Employee.create!(user: user, number: 1)
        Token.create!(user: user, secret: "new")
        user.update!(last_seen: 1)
      end

      kind "waiting"
      sample "for a job, by a condition variable", wrong: "waiting is not recognised" do
        lock = Mutex.new
        done = ConditionVariable.new
        3.times { Token.exists?(secret: "done") || lock.synchronize { done.wait(lock, 1e-9) } }
      end
      sample "for a thread", wrong: "waiting is not recognised" do
        worker = Thread.new { Thread.stop }
        3.times { Token.exists?(secret: "done") || worker.join(1e-9) }
        worker.kill
      end
      sample "for work, of which each asks the same" do
        queue = Queue.new
        3.times { queue << 1 }
        3.times { queue.pop && Token.exists?(secret: "done") } #=> duplicate 3
      end

      kind "statements as people write them"
      sample "without a space around the sign" do
        [1, 2, 3].each { |id| Base.connection.select_value("SELECT name FROM users WHERE id=#{id}") } #=> n_plus_one 3
      end
      sample "pages, without a space around the sign" do
        last = 0
        while (ids = Base.connection.select_values("SELECT id FROM comments WHERE id>#{last} ORDER BY id LIMIT 7")).any?
          last = ids.last
        end
      end
      sample "pages by two columns" do
        last = [0, 0]
        while (rows = Comment.where("(post_id, id) > (?, ?)", *last).order(:post_id, :id).limit(7).pluck(:post_id, :id)).any?
          last = rows.last
        end
      end
      sample "pages by two columns, backwards" do
        last = [99, 999]
        while (rows = Comment.where("(post_id, id) < (?, ?)", *last).order(post_id: :desc, id: :desc).limit(7).pluck(:post_id, :id)).any?
          last = rows.last
        end
      end
      sample "the next by two columns, of each" do
        Post.order(:id).each do |post|
          Comment.where("(post_id, id) > (?, ?)", post.id, 0).order(:post_id, :id).limit(1).pick(:body) #=> n_plus_one 10
        end
      end
      sample "one set in batches, twice" do
        Post.find_each(batch_size: 3, &:title)
        Post.includes(:comments).find_each(batch_size: 3) { |post| post.comments.size }
      end
      sample "one set in batches, twice at one line" do
        2.times { Post.find_each(batch_size: 3, &:title) }
      end
      sample "batches, and the same count between them" do
        Post.find_each(batch_size: 3) { Tag.count } #=> duplicate 10
      end
      sample "a list of each that others have as well", wrong: "missed: lists that change are batches" do
        User.order(:id).ids.each { |id| Tag.where(id: [id % 3 + 1, id % 2 + 4]).to_a } #=> n_plus_one 5
      end

      kind "ways around an association"
      sample "the record whose key a record holds" do
        Comment.order(:id).each { |comment| User.find(comment.author_id) } #=> n_plus_one 30
      end
      sample "the first level by a JOIN, the second not" do
        User.eager_load(:posts).order(:id).each do |user|
          user.posts.each { |post| post.comments.to_a } #=> n_plus_one 10 Post#comments
        end
      end
      sample "a calculation on an association of the superclass" do
        Dog.order(:id).to_a.each { |dog| dog.visits.count } #=> n_plus_one 3 Animal#visits
      end
      sample "up a tree, from all leaves" do
        up = ->(category) { category.parent ? up.call(category.parent) : category } #=> n_plus_one 8 Category#parent
        Category.where.not(id: Category.where.not(parent_id: nil).select(:parent_id)).order(:id).to_a.each(&up)
      end
    end
  end
end
