# frozen_string_literal: true

require_relative "../records"

# Common code with ActiveRecord.
module Accuracy
  module Records
    module RecordSamples
      extend Samples

      GROUP = "ActiveRecord"

      kind "associations"
      sample "has_one" do
        User.all.to_a.each do |user|
          user.employee #=> n_plus_one 5 User#employee
        end
      end
      sample "has_one, preloaded" do
        User.preload(:employee).each(&:employee)
      end
      sample "has_many" do
        User.order(:name).each do |user|
          user.posts.map(&:title) #=> n_plus_one 5 User#posts
        end
      end
      sample "belongs_to, to few owners" do
        Comment.all.map { |comment| comment.author.name } #=> n_plus_one 30 Comment#author
      end
      sample "belongs_to, to one owner" do
        Comment.limit(3).order(:id).map { |comment| comment.post.title } #=> n_plus_one 3 Comment#post
      end
      sample "has_many through" do
        User.all.each { |user| user.comments.to_a } #=> n_plus_one 5 User#comments
      end
      sample "has_one through" do
        User.all.map { |user| user.office&.name } #=> n_plus_one 5 User#office
      end
      sample "has_and_belongs_to_many" do
        Post.all.each { |post| post.tags.map(&:name) } #=> n_plus_one 10 Post#tags
      end
      sample "has_one with a scope" do
        User.all.map { |user| user.latest_post&.title } #=> n_plus_one 5 User#latest_post
      end
      sample "has_many with a scope" do
        User.all.each { |user| user.published_posts.to_a } #=> n_plus_one 5 User#published_posts
      end
      sample "two associations on one line" do
        User.all.to_a.each do |user|
          [user.employee, user.tokens.to_a] #=> n_plus_one 5 User#employee, n_plus_one 5 User#tokens
        end
      end
      sample "two associations to one table" do
        Comment.all.to_a.each do |comment|
          comment.author #=> n_plus_one 30 Comment#author
        end
        Post.all.to_a.each do |post|
          post.user #=> n_plus_one 10 Post#user
        end
      end
      sample "one association at two lines" do
        User.all.to_a.each_with_index do |user, index|
          if index < 3
            user.employee #=> n_plus_one 5 User#employee
          else
            user.employee.number
          end
        end
      end
      sample "polymorphic has_many" do
        User.all.each { |user| user.notes.to_a } #=> n_plus_one 5 User#notes
      end
      sample "polymorphic belongs_to" do
        Note.order(:id).each do |note|
          note.owner #=> n_plus_one 15 Note#owner
        end
      end
      sample "polymorphic belongs_to, one of each type" do
        notes = Note.order(:owner_type).to_a
        [notes.first, notes.last].each do |note|
          note.owner #=> n_plus_one 2 Note#owner
        end
      end
      sample "polymorphic belongs_to, preloaded" do
        Note.preload(:owner).each(&:owner)
      end
      sample "nested, three levels" do
        User.all.each do |user|
          user.posts.each do |post| #=> n_plus_one 5 User#posts
            post.comments.each do |comment| #=> n_plus_one 10 Post#comments
              comment.author.name #=> n_plus_one 30 Comment#author
            end
          end
        end
      end
      sample "nested, the outer one preloaded" do
        User.includes(:posts).each do |user|
          user.posts.each do |post|
            post.comments.to_a #=> n_plus_one 10 Post#comments
          end
        end
      end
      sample "nested, all preloaded" do
        User.includes(:employee, posts: { comments: :author }).each do |user|
          user.posts.each { |post| post.comments.each { |comment| [comment.author.name, user.employee.number] } }
        end
      end
      sample "eager_load and references" do
        User.eager_load(:posts).each { |user| user.posts.map(&:title) }
        User.includes(:employee).references(:employee).each(&:employee)
      end
      sample "joins does not load" do
        User.joins(:employee).each do |user|
          user.employee.number #=> n_plus_one 5 User#employee
        end
      end
      sample "inverse_of gives the owner" do
        User.preload(:reports).each { |user| user.reports.map { |report| report.manager.name } }
      end
      sample "one record has no siblings" do
        user = User.first
        [user.posts.to_a, user.tokens.to_a, user.employee]
      end
      sample "one record of each kind" do
        [User.first.employee, Post.first.user, Comment.first.post]
      end
      sample "two records, two lines" do
        first = User.find_by!(name: "user 1")
        other = User.find_by!(name: "user 2")
        first.posts.to_a
        other.posts.to_a
      end
      sample "siblings loaded, but two others are asked" do
        User.all.to_a
        first = User.find(User.minimum(:id))
        other = User.find(User.maximum(:id))
        first.posts.to_a
        other.posts.to_a
      end
      sample "of a list of siblings only one is asked" do
        User.all.to_a.first.posts.to_a
      end
      sample "a delegated method" do
        Employee.all.map(&:user_name) #=> n_plus_one 5 Employee#user elsewhere
      end
      sample "a method of the model" do
        Post.all.map(&:author_name) #=> n_plus_one 10 Post#user elsewhere
      end
      sample "loaded by hand, association set" do
        users = User.all.to_a
        employees = Employee.where(user_id: users.map(&:id)).index_by(&:user_id)
        users.each { |user| user.association(:employee).target = employees[user.id] }
        users.map(&:employee)
      end
      sample "Preloader called once" do
        users = User.all.to_a
        ActiveRecord::Associations::Preloader.new(records: users, associations: { posts: :comments }).call
        users.each { |user| user.posts.each { |post| post.comments.to_a } }
      end
      sample "strict loading, preloaded" do
        User.strict_loading.preload(:posts).each { |user| user.posts.to_a }
      end
      sample "instances of another query of the same table" do
        User.where(name: "user 1").to_a.each { |user| user.posts.to_a }
        User.where(name: "user 2").to_a.each { |user| user.posts.to_a }
      end
      sample "reloaded in a loop" do
        User.all.each do |user|
          user.reload #=> n_plus_one 5
        end
      end

      kind "single table inheritance"
      sample "association of the base class" do
        Dog.all.each { |dog| dog.visits.to_a } #=> n_plus_one 3 Animal#visits
      end
      sample "association of the subclass" do
        Dog.all.to_a.each do |dog|
          dog.walks.to_a #=> n_plus_one 3 Dog#walks
        end
      end
      sample "mixed subclasses" do
        Animal.all.each { |animal| animal.user.name } #=> n_plus_one 5 Animal#user
      end
      sample "mixed subclasses, preloaded" do
        Animal.preload(:user, :visits).each { |animal| [animal.user.name, animal.visits.to_a] }
      end
      sample "subclasses counted" do
        User.all.each do |user|
          user.animals.where(type: Dog.name).count #=> n_plus_one 5 User#animals
        end
      end

      kind "trees"
      sample "children, recursively" do
        walk = lambda do |category|
          category.children.each { |child| walk.call(child) } #=> n_plus_one 7 Category#children
        end
        Category.where(parent_id: nil).each { |root| walk.call(root) }
      end
      sample "parents, up to the root" do
        leaf = Category.order(:id).last
        depth = 0
        depth += 1 while (leaf = leaf.parent) #=> n_plus_one 2 Category#parent
        depth
      end
      sample "a level at a time" do
        ids = Category.where(parent_id: nil).ids
        ids = Category.where(parent_id: ids).ids while ids.any?
      end
      sample "preloaded two levels" do
        Category.where(parent_id: nil).preload(children: :children).each { |root| root.children.each { |child| child.children.to_a } }
      end
      sample "managers" do
        User.all.each { |user| user.manager&.name } #=> n_plus_one 4 User#manager
      end

      kind "composite keys"
      sample "has_many" do
        Order.all.each { |order| order.items.to_a } #=> n_plus_one 4 Order#items
      end
      sample "belongs_to" do
        Item.all.each do |item|
          item.order #=> n_plus_one 8 Item#order
        end
      end
      sample "preloaded" do
        Order.preload(:items).each { |order| order.items.to_a }
      end
      sample "counted" do
        Order.all.each do |order|
          order.items.count #=> n_plus_one 4 Order#items
        end
      end
      sample "find_each" do
        Order.find_each(batch_size: 2) { |order| order.shop_id }
      end
      sample "find in a loop" do
        [[1, 1], [2, 2], [1, 3]].each do |key|
          Order.find(key) #=> n_plus_one 3
        end
      end

      kind "calculations and finders on associations"
      sample "count" do
        User.all.each do |user|
          user.posts.count #=> n_plus_one 5 User#posts
        end
      end
      sample "size" do
        User.all.map { |user| user.tokens.size } #=> n_plus_one 5 User#tokens
      end
      sample "length of what was preloaded" do
        User.preload(:tokens).map { |user| [user.tokens.size, user.tokens.length, user.tokens.any?, user.tokens.empty?] }
      end
      sample "count of what was preloaded" do
        User.preload(:tokens).map { |user| user.tokens.count } #=> n_plus_one 5 User#tokens
      end
      sample "exists?" do
        User.all.map { |user| user.posts.exists? } #=> n_plus_one 5 User#posts
      end
      sample "any?" do
        User.all.map { |user| user.posts.any? } #=> n_plus_one 5 User#posts
      end
      sample "pluck" do
        User.all.map { |user| user.tokens.pluck(:secret) } #=> n_plus_one 5 User#tokens
      end
      sample "ids" do
        User.all.map(&:post_ids) #=> n_plus_one 5 User#posts
      end
      sample "sum" do
        Post.all.map { |post| post.comments.sum(:id) } #=> n_plus_one 10 Post#comments
      end
      sample "maximum, through another" do
        User.all.map { |user| user.comments.maximum(:id) } #=> n_plus_one 5 User#comments
      end
      sample "first" do
        User.all.map { |user| user.posts.first } #=> n_plus_one 5 User#posts
      end
      sample "last, with conditions" do
        User.all.each do |user|
          user.tokens.where(on_behalf: false).last&.secret #=> n_plus_one 5 User#tokens
        end
      end
      sample "find_by" do
        User.all.map { |user| user.tokens.find_by(on_behalf: false) } #=> n_plus_one 5 User#tokens
      end
      sample "a scope of the model" do
        User.all.map { |user| user.posts.published.to_a } #=> n_plus_one 5 User#posts
      end
      sample "joined with another table" do
        User.all.map { |user| user.posts.joins(:comments).distinct.to_a } #=> n_plus_one 5 User#posts
      end
      sample "ordered and limited" do
        User.all.map { |user| user.posts.order(:title).limit(1).to_a } #=> n_plus_one 5 User#posts
      end
      sample "ordered, limited and moved" do
        User.all.map { |user| user.posts.order(:id).limit(1).offset(1).to_a } #=> n_plus_one 5 User#posts
      end
      sample "find_each of each" do
        User.all.to_a.each do |user|
          user.posts.find_each { |post| post.title } #=> n_plus_one 5 User#posts
        end
      end
      sample "preloaded, then filtered in the database" do
        User.preload(:posts).each do |user|
          user.posts.where(published: true).to_a #=> n_plus_one 5 User#posts
        end
      end
      sample "preloaded, then filtered in Ruby" do
        User.preload(:posts).each { |user| user.posts.select(&:published).first }
      end
      sample "counted, of records that come one at a time" do
        Post.all.to_a.each do |post|
          user = post.user #=> n_plus_one 10 Post#user
          user.tokens.count #=> n_plus_one 10 User#tokens
        end
      end
      sample "grouped count" do
        counts = Post.group(:user_id).count
        User.all.map { |user| counts[user.id] }
      end
      sample "the tags of each, counted" do
        Post.all.map { |post| post.tags.count } #=> n_plus_one 10 Post#tags
      end
      sample "a counter cache" do
        Post.all.map { |post| post.comments.size }
      end
      sample "default scope" do
        Article.all.map { |article| article.notes.to_a } #=> n_plus_one 10 Article#notes
      end
      sample "preload in each turn" do
        User.all.to_a.each do |user|
          user.posts.preload(:comments).each { |post| post.comments.to_a } #=> n_plus_one 5 User#posts
        end
      end
      sample "Preloader in each turn" do
        User.all.to_a.each do |user|
          ActiveRecord::Associations::Preloader.new(records: [user], associations: :posts).call #=> n_plus_one 5 User#posts
        end
      end

      kind "finders in a loop"
      sample "find" do
        User.ids.each { |id| User.find(id) } #=> n_plus_one 5
      end
      sample "find_by" do
        ["user 1", "user 2", "user 3"].each do |name|
          User.find_by(name: name) #=> n_plus_one 3
        end
      end
      sample "where and to_a" do
        User.all.each do |user|
          Article.where(user_id: user.id).to_a #=> n_plus_one 5
        end
      end
      sample "exists?" do
        ["user 1", "user 2", "user 3"].select { |name| User.exists?(name: name) } #=> n_plus_one 3
      end
      sample "pick" do
        User.ids.map { |id| Employee.where(user_id: id).pick(:number) } #=> n_plus_one 5
      end
      sample "a helper, called from many lines" do
        number = ->(name) { User.find_by(name: name) } #=> n_plus_one 3
        number.call("user 1")
        number.call("user 2")
        number.call("user 3")
      end
      sample "an association in a helper, called from many lines" do
        number = ->(user) { user.employee.number } #=> n_plus_one 3 User#employee
        users = User.order(:id).to_a
        number.call(users[0])
        number.call(users[1])
        number.call(users[2])
      end
      sample "find by many lines" do
        ids = Tag.ids
        Tag.find(ids[0])
        Tag.find(ids[1])
        Tag.find(ids[2])
      end
      sample "find twice on one line" do
        ids = User.ids
        [User.find(ids.first), User.find(ids.last)]
      end
      sample "find_or_initialize_by" do
        %w[a b c].each do |name|
          Tag.find_or_initialize_by(name: name) #=> n_plus_one 3
        end
      end
      sample "find with several ids" do
        User.find(User.ids)
      end
      sample "a lookup with two columns" do
        User.order(:id).each do |user|
          Token.find_by(user_id: user.id, on_behalf: false) #=> n_plus_one 5 User#tokens
        end
      end
      sample "memoized" do
        users = {}
        Post.all.to_a.each { |post| users[post.user_id] ||= User.find(post.user_id) } #=> n_plus_one 5
      end

      kind "lists"
      sample "slices of ids" do
        Comment.ids.each_slice(7) { |ids| Comment.where(id: ids).to_a }
      end
      sample "slices of ids, preloaded" do
        Comment.ids.each_slice(7) { |ids| Comment.where(id: ids).preload(:post, :author).each { |comment| comment.post.title } }
      end
      sample "slices of records" do
        Comment.all.to_a.each_slice(7) { |slice| Post.where(id: slice.map(&:post_id)).to_a }
      end
      sample "a list for each record" do
        User.order(:id).each_with_index do |user, index|
          Tag.where(id: (1..2 + index).map { |number| user.id + number }).to_a #=> n_plus_one 5
        end
      end
      sample "a list of two for each record" do
        User.order(:id).each do |user|
          Tag.where(id: [user.id, user.id + 5]).to_a #=> n_plus_one 5
        end
      end
      sample "lists of different lengths, one statement each" do
        Tag.where(id: [1, 2]).to_a
        Post.where(id: [1, 2, 3]).to_a
      end
      sample "the list of one user and the list of the other" do
        Tag.where(id: [1, 2]).to_a
        Tag.where(id: [3, 4, 5]).to_a
      end
      sample "VALUES of different lengths", writes: true do
        [1, 2, 3].each { |length| Tag.insert_all(Array.new(length + 1) { { name: "bulk" } }) }
      end

      kind "batches"
      sample "find_each" do
        Comment.find_each(batch_size: 7) { |comment| comment.body }
      end
      sample "find_each, with preload" do
        Comment.preload(:post, :author).find_each(batch_size: 7) { |comment| [comment.post.title, comment.author.name] }
      end
      sample "find_each, downwards" do
        Comment.find_each(batch_size: 7, order: :desc) { |comment| comment.body }
      end
      sample "find_each, walking" do
        Comment.find_each(batch_size: 7) do |comment|
          comment.post.title #=> n_plus_one 30 Comment#post
        end
      end
      sample "find_in_batches" do
        Comment.find_in_batches(batch_size: 7) { |comments| comments.map(&:body) }
      end
      sample "in_batches" do
        Comment.in_batches(of: 7) { |comments| comments.to_a }
      end
      sample "in_batches, pluck" do
        Comment.in_batches(of: 7) do |comments|
          comments.pluck(:id)
        end
      end
      sample "in_batches, load" do
        Comment.in_batches(of: 7, load: true) { |comments| comments.preload(:post).map { |comment| comment.post.title } }
      end
      sample "in_batches, counted" do
        Comment.in_batches(of: 7) do |comments|
          comments.count
        end
      end
      sample "in_batches, by range" do
        Comment.in_batches(of: 7, use_ranges: true) { |comments| comments.to_a }
      end
      sample "in_batches, updated", writes: true do
        Comment.in_batches(of: 7).update_all(body: "new")
      end
      sample "in_batches, deleted", writes: true do
        Comment.in_batches(of: 7).delete_all
      end
      sample "batches of one association" do
        User.first.comments.find_each(batch_size: 2) { |comment| comment.body }
      end
      sample "pages" do
        5.times { |page| Comment.order(:id).limit(7).offset(page * 7).to_a }
      end
      sample "pages of one record" do
        user = User.first
        3.times { |page| user.posts.order(:id).limit(1).offset(page).to_a }
      end
      sample "pages of one record, while others are loaded" do
        users = User.all.to_a
        3.times { |page| users.first.posts.order(:id).limit(1).offset(page).to_a }
      end
      sample "pages by key" do
        last = 0
        while (page = Comment.where("id > ?", last).order(:id).limit(7).to_a).any?
          last = page.last.id
        end
      end
      sample "ranges of keys" do
        (0..4).each { |number| Comment.where(id: number * 7 + 1..number * 7 + 7).to_a }
      end

      kind "writes"
      sample "create", writes: true do
        3.times { |number| Tag.create!(name: "new #{number}") } #=> write_loop 3
      end
      sample "insert_all", writes: true do
        Tag.insert_all(Array.new(3) { |number| { name: "new #{number}" } })
      end
      sample "insert_all of one row in a loop", writes: true do
        3.times do |number|
          Tag.insert_all([{ name: "new #{number}" }]) #=> write_loop 3
        end
      end
      sample "update", writes: true do
        Tag.all.to_a.each do |tag|
          tag.update!(name: "other") #=> write_loop 20
        end
      end
      sample "update_column", writes: true do
        User.all.to_a.each { |user| user.update_column(:name, "other #{user.id}") } #=> write_loop 5
      end
      sample "touch", writes: true do
        Post.all.to_a.each(&:touch) #=> write_loop 10
      end
      sample "destroy", writes: true do
        Tag.all.to_a.each do |tag|
          tag.delete #=> write_loop 20
        end
      end
      sample "destroy_all", writes: true do
        Token.destroy_all #=> write_loop 10
      end
      sample "delete_all", writes: true do
        Token.where(on_behalf: false).delete_all
      end
      sample "update_all once", writes: true do
        Token.update_all(on_behalf: true)
      end
      sample "counter cache and touch", writes: true do
        post = Post.first
        3.times do
          post.comments.create!(body: "new", author_id: 1) #=> write_loop 3
        end
      end
      sample "uniqueness", writes: true do
        user = User.first
        3.times do |number|
          Token.new(user: user, secret: "new #{number}").save!(context: :checked) #=> write_loop 3
        end
      end
      sample "find_or_create_by", writes: true do
        %w[x y z].each do |name|
          Tag.find_or_create_by!(name: name) #=> n_plus_one 3, write_loop 3
        end
      end
      sample "find_or_create_by, all there", writes: true do
        Tag.create!(name: "there")
        Tag.find_or_create_by!(name: "there")
      end
      sample "one create and one update", writes: true do
        tag = Tag.create!(name: "new")
        tag.update!(name: "newer")
        tag.destroy!
      end
      sample "save points", writes: true do
        User.transaction do
          User.transaction(requires_new: true) { User.first.touch }
          User.transaction(requires_new: true) { Post.first.touch }
          User.transaction(requires_new: true) { Token.first }
        end
      end
      sample "habtm, added one by one", writes: true do
        post = Post.first
        Tag.first(3).each do |tag|
          post.tags << tag #=> write_loop 3
        end
      end
      sample "a seed", writes: true do
        3.times do |number|
          user = User.create!(name: "seed #{number}") #=> write_loop 3
          Employee.create!(user: user) #=> write_loop 3
        end
      end
      sample "upsert", writes: true do
        3.times { |number| Tag.upsert({ id: number + 1, name: "up" }) } #=> write_loop 3
      end

      kind "the same again"
      sample "find_by" do
        3.times do
          User.find_by(name: "user 1") #=> duplicate 3
        end
      end
      sample "at two lines" do
        User.find_by(name: "user 1") #=> duplicate 2
        User.find_by(name: "user 1")
      end
      sample "count" do
        User.all.each do |user|
          [user.id, User.count] #=> duplicate 5
        end
      end
      sample "with another value" do
        User.find_by(name: "user 1")
        User.find_by(name: "user 2")
      end
      sample "after a write", writes: true do
        Tag.count
        Tag.create!(name: "one")
        Tag.count
      end
      sample "reload after update", writes: true do
        tag = Tag.first
        tag.update!(name: "other")
        tag.reload
        tag.update!(name: "another")
        tag.reload
      end
      sample "reload of one association" do
        user = User.first
        2.times do
          user.posts.reload.to_a #=> duplicate 2
        end
      end
      sample "of one association, while others are loaded" do
        user = User.all.to_a.first
        3.times do
          user.posts.where(published: true).to_a #=> duplicate 3
        end
      end
      sample "answered by the query cache" do
        Base.cache { 3.times { User.find_by(name: "user 1") } } #=> cached_repeat 2
      end
      sample "walks, partly answered by the query cache" do
        Base.cache do
          Comment.all.to_a.each do |comment|
            comment.author.name #=> n_plus_one 5 Comment#author
          end
        end
      end
      sample "waiting for a change", wrong: "waiting is not recognised" do
        3.times { Tag.exists?(name: "ready") || sleep(1e-9) }
      end
      sample "waiting for a time", wrong: "waiting is not recognised" do
        3.times do
          Post.where("updated_at > ?", Time.now.utc + 60).order(:id).first
          sleep(1e-9)
        end
      end
      sample "a queue that is emptied", writes: true do
        3.times { Tag.order(:id).first.destroy! } #=> write_loop 3
      end
      sample "random" do
        3.times { User.order(Arel.sql("RANDOM()")).first }
      end
      sample "the clock of the database" do
        2.times { Base.connection.select_value("SELECT CURRENT_TIMESTAMP") }
      end

      kind "statements"
      sample "raw SQL in a loop" do
        User.ids.each do |id|
          Base.connection.select_all("SELECT * FROM tokens WHERE user_id = #{id}").to_a #=> n_plus_one 5
        end
      end
      sample "any letter case, comments and tags" do
        verbs = ["SELECT", "select", "Select", "SELECT /* app:x */", "SELECT"]
        User.ids.zip(verbs).each do |id, verb|
          Base.connection.select_all("#{verb} * FROM tokens WHERE user_id = #{id} -- line #{id}\n /*traceparent='#{id}'*/") #=> n_plus_one 5
        end
      end
      sample "exec_query with binds" do
        User.ids.each do |id|
          Base.connection.exec_query("SELECT name FROM users WHERE id = #{id}", "Name") #=> n_plus_one 5
        end
      end
      sample "find_by_sql" do
        User.ids.each do |id|
          Token.find_by_sql(["SELECT * FROM tokens WHERE user_id = ?", id]) #=> n_plus_one 5
        end
      end
      sample "prepared statements off" do
        Base.connection.unprepared_statement do
          User.all.each do |user|
            user.employee #=> n_plus_one 5 User#employee
          end
        end
      end
      sample "prepared statements off, counted" do
        Base.connection.unprepared_statement do
          User.all.each { |user| user.posts.count } #=> n_plus_one 5 User#posts
        end
      end
      sample "prepared statements off, batches" do
        Base.connection.unprepared_statement { Comment.find_each(batch_size: 7) { |comment| comment.body } }
      end
      sample "interleaved" do
        User.all.to_a.each do |user|
          user.employee #=> n_plus_one 5 User#employee
          Tag.find_by(name: user.name) #=> n_plus_one 5
          user.tokens.to_a #=> n_plus_one 5 User#tokens
        end
      end
      sample "in a transaction" do
        User.transaction do
          User.all.each { |user| user.posts.to_a } #=> n_plus_one 5 User#posts
        end
      end
      sample "raw INSERT in a loop", writes: true do
        3.times do |number|
          Base.connection.execute("INSERT INTO tags (name) VALUES ('raw #{number}')") #=> write_loop 3
        end
      end
      sample "raw INSERT of many rows", writes: true do
        2.times { Base.connection.execute("INSERT INTO tags (name) VALUES ('a'), ('b'), ('c')") }
      end
      sample "the schema" do
        3.times { Base.connection.columns("users") }
        2.times { Base.connection.tables }
      end
      sample "sums month by month" do
        (1..3).each do |number|
          Comment.where(id: number * 5..number * 5 + 4).sum(:author_id) #=> n_plus_one 3
        end
      end
      sample "a UNION" do
        User.ids.each do |id|
          union = "SELECT id FROM posts WHERE user_id = #{id} UNION SELECT id FROM tokens WHERE user_id = #{id}"
          Base.connection.select_all(union) #=> n_plus_one 5
        end
      end
      sample "a subquery" do
        User.all.map { |user| Post.where(id: Comment.where(author_id: user.id).select(:post_id)).to_a } #=> n_plus_one 5
      end
      sample "a subquery, once" do
        Post.where(user_id: User.where(name: "user 1").select(:id)).to_a
      end

      kind "other ways to run"
      sample "Enumerator" do
        walk = User.all.to_a.each_entry
        walk.map { |user| user.employee } #=> n_plus_one 5 User#employee
      end
      sample "Enumerator, by next" do
        users = User.all.to_a
        numbers = Enumerator.new do |yielder|
          users.each { |user| yielder << user.employee.number } #=> n_plus_one 5 User#employee
        end
        5.times { numbers.next }
      end
      sample "lazy" do
        User.all.to_a.lazy.map { |user| user.employee }.first(4) #=> n_plus_one 4 User#employee
      end
      sample "Fiber" do
        User.all.to_a.each do |user|
          Fiber.new { user.employee }.resume #=> n_plus_one 5 User#employee
        end
      end
      sample "Thread" do
        User.all.to_a.map do |user|
          Thread.new { Base.connection_pool.with_connection { user.employee.number } } #=> n_plus_one 5 User#employee
        end.map(&:value)
      end
      sample "one Thread" do
        users = User.all.to_a
        thread = Thread.new do
          Base.connection_pool.with_connection { users.each { |user| user.posts.to_a } } #=> n_plus_one 5 User#posts
        end
        thread.join
      end
      sample "Thread, preloaded" do
        User.preload(:employee).to_a.map { |user| Thread.new { user.employee.number } }.map(&:value)
      end
      sample "a queue of work" do
        queue = Queue.new
        User.all.to_a.each { |user| queue << user }
        queue.close
        worker = Thread.new do
          while (user = queue.pop)
            Base.connection_pool.with_connection { user.employee.number } #=> n_plus_one 5 User#employee
          end
        end
        worker.join
      end
      sample "a body that is made while it is sent" do
        body = Enumerator.new do |out|
          User.all.to_a.each { |user| out << user.posts.map(&:title).join } #=> n_plus_one 5 User#posts
        end
        body.each(&:size)
      end
      sample "load_async, once" do
        users = User.all.load_async
        posts = Post.where(published: true).load_async
        [users.to_a, posts.to_a]
      end
      sample "load_async in a loop" do
        User.ids.map { |id| Token.where(user_id: id).load_async }.each(&:to_a) #=> n_plus_one 5
      end
      sample "an error in between" do
        User.all.each do |user|
          user.employee.missing #=> n_plus_one 5 User#employee
        rescue NoMethodError
          nil
        end
      end
      sample "throw in between" do
        User.all.each do |user|
          catch(:done) { throw :done, user.employee } #=> n_plus_one 5 User#employee
        end
      end
      sample "a job for each" do
        job = ->(id) { User.find(id).posts.to_a } #=> n_plus_one 5, n_plus_one 5 User#posts
        User.ids.each { |id| job.call(id) }
      end
      sample "serialized" do
        JSON.generate(User.all.map { |user| { name: user.name, titles: user.posts.map(&:title) } }) #=> n_plus_one 5 User#posts
      end
    end
  end
end
