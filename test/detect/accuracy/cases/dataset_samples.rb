# frozen_string_literal: true

require_relative "../datasets"

# Common code with Sequel.
module Accuracy
  module Datasets
    module DatasetSamples
      extend Samples

      GROUP = "Sequel"

      kind "associations"
      sample "one_to_one" do
        User.all.each do |user|
          user.employee #=> n_plus_one 5 User#employee
        end
      end
      sample "one_to_many" do
        User.order(:name).all.each do |user|
          user.posts.map(&:title) #=> n_plus_one 5 User#posts
        end
      end
      sample "many_to_one" do
        Comment.all.map { |comment| comment.author.name } #=> n_plus_one 30 Comment#author
      end
      sample "many_to_many" do
        Post.all.each { |post| post.tags.map(&:name) } #=> n_plus_one 10 Post#tags
      end
      sample "one_through_one" do
        User.all.map { |user| user.office&.name } #=> n_plus_one 5 User#office
      end
      sample "with conditions" do
        User.all.each { |user| user.published_posts.size } #=> n_plus_one 5 User#published_posts
      end
      sample "with an order" do
        User.all.map { |user| user.latest_post&.title } #=> n_plus_one 5 User#latest_post
      end
      sample "records that come one by one" do
        User.order(:id).each do |user|
          user.employee #=> n_plus_one 5 User#employee
        end
      end
      sample "records of map" do
        User.map { |user| user.employee&.number } #=> n_plus_one 5 User#employee
      end
      sample "records of as_hash" do
        User.as_hash(:id).each_value do |user|
          user.tokens.size #=> n_plus_one 5 User#tokens
        end
      end
      sample "eager" do
        User.eager(:employee, posts: { comments: :author }).all.each do |user|
          [user.employee, user.posts.map { |post| post.comments.map { |comment| comment.author.name } }]
        end
      end
      sample "eager_graph" do
        User.eager_graph(:employee).all.each(&:employee)
      end
      sample "eager, one level too few" do
        User.eager(:posts).all.each do |user|
          user.posts.each do |post|
            post.comments.size #=> n_plus_one 10 Post#comments
          end
        end
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
      sample "two associations on one line" do
        User.all.each do |user|
          [user.employee, user.tokens] #=> n_plus_one 5 User#employee, n_plus_one 5 User#tokens
        end
      end
      sample "joined, not loaded" do
        User.join(:employees, user_id: :id).select_all(:users).all.each do |user|
          user.employee.number #=> n_plus_one 5 User#employee
        end
      end
      sample "tactical eager loading" do
        TacticalUser.all.each { |user| user.posts.size }
      end
      sample "tactical eager loading, nested" do
        TacticalUser.all.each { |user| user.posts.each { |post| post.comments.size } }
      end
      sample "one record has no siblings" do
        user = User.first
        [user.posts, user.tokens, user.employee]
      end
      sample "two records, two lines" do
        first = User.first(name: "user 1")
        other = User.first(name: "user 2")
        first.posts
        other.posts
      end
      sample "of a list of siblings only one is asked" do
        User.all.first.posts
      end
      sample "a method of the model" do
        Employee.all.map(&:user_name) #=> n_plus_one 5 Employee#user elsewhere
      end
      sample "reciprocal, set by the load" do
        User.eager(:posts).all.each { |user| user.posts.map { |post| post.user.name } }
      end
      sample "single table inheritance" do
        Dog.all.each { |dog| dog.visits.size } #=> n_plus_one 3 Animal#visits
      end
      sample "single table inheritance, mixed" do
        Animal.all.each { |animal| animal.user.name } #=> n_plus_one 5 Animal#user
      end
      sample "children, recursively" do
        walk = lambda do |category|
          category.children.each { |child| walk.call(child) } #=> n_plus_one 7 Category#children
        end
        Category.where(parent_id: nil).all.each { |root| walk.call(root) }
      end
      sample "parents, up to the root" do
        leaf = Category.order(:id).last
        depth = 0
        depth += 1 while (leaf = leaf.parent) #=> n_plus_one 2 Category#parent
        depth
      end
      sample "composite keys" do
        Order.all.each { |order| order.items.size } #=> n_plus_one 4 Order#items
      end
      sample "composite keys, eager" do
        Order.eager(:items).all.each { |order| order.items.size }
      end
      sample "composite keys, the other way" do
        Item.all.each { |item| item.order.id } #=> n_plus_one 8 Item#order
      end
      sample "one owner asked again" do
        user = User.first
        2.times do
          user.posts(reload: true) #=> duplicate 2
        end
      end

      kind "calculations and finders on associations"
      sample "count" do
        User.all.each do |user|
          user.posts_dataset.count #=> n_plus_one 5 User#posts
        end
      end
      sample "empty?" do
        User.all.map { |user| user.tokens_dataset.empty? } #=> n_plus_one 5 User#tokens
      end
      sample "last, with conditions" do
        User.all.each do |user|
          user.tokens_dataset.where(on_behalf: false).order(:id).last #=> n_plus_one 5 User#tokens
        end
      end
      sample "first, with conditions" do
        User.all.map { |user| user.posts_dataset.first(published: true) } #=> n_plus_one 5 User#posts
      end
      sample "select_map" do
        User.all.map { |user| user.posts_dataset.select_map(:title) } #=> n_plus_one 5 User#posts
      end
      sample "max" do
        User.all.map { |user| user.posts_dataset.max(:id) } #=> n_plus_one 5 User#posts
      end
      sample "a dataset method" do
        User.all.map { |user| user.posts_dataset.published.all } #=> n_plus_one 5 User#posts
      end
      sample "through a join" do
        Post.all.map { |post| post.tags_dataset.count } #=> n_plus_one 10 Post#tags
      end
      sample "a page of each" do
        User.all.map { |user| user.posts_dataset.order(:id).limit(1, 1).all } #=> n_plus_one 5 User#posts
      end
      sample "a block" do
        User.all.each do |user|
          user.posts { |posts| posts.where(published: true) } #=> n_plus_one 5 User#posts
        end
      end
      sample "eager, then filtered in the database" do
        User.eager(:posts).all.each do |user|
          user.posts_dataset.where(published: true).all #=> n_plus_one 5 User#posts
        end
      end
      sample "grouped count" do
        counts = Post.group_and_count(:user_id).as_hash(:user_id, :count)
        User.all.map { |user| counts[user.id] }
      end
      sample "composite key, counted" do
        Order.all.each do |order|
          order.items_dataset.count #=> n_plus_one 4 Order#items
        end
      end

      kind "finders in a loop"
      sample "primary key" do
        User.select_map(:id).each { |id| User[id] } #=> n_plus_one 5
      end
      sample "with_pk!" do
        User.select_map(:id).each { |id| User.with_pk!(id) } #=> n_plus_one 5
      end
      sample "first" do
        ["user 1", "user 2", "user 3"].each do |name|
          User.first(name: name) #=> n_plus_one 3
        end
      end
      sample "where" do
        User.select_map(:id).each do |id|
          Employee.where(user_id: id).all #=> n_plus_one 5
        end
      end
      sample "get" do
        [1, 2, 3].map { |id| DB[:users].where(id: id).get(:name) } #=> n_plus_one 3
      end
      sample "a dataset without a model" do
        [1, 2, 3].map { |id| DB[:posts_tags].where(post_id: id).all } #=> n_plus_one 3
      end
      sample "twice on one line" do
        [User[1], User[2]]
      end
      sample "three lines" do
        User[1]
        User[2]
        User[3]
      end
      sample "a helper, called from many lines" do
        find = ->(name) { User.first(name: name) } #=> n_plus_one 3
        find.call("user 1")
        find.call("user 2")
        find.call("user 3")
      end
      sample "find_or_create", writes: true do
        %w[x y z].each do |name|
          Tag.find_or_create(name: name) #=> n_plus_one 3, write_loop 3
        end
      end

      kind "lists and batches"
      sample "slices of ids" do
        Comment.select_map(:id).each_slice(7) { |ids| Comment.where(id: ids).all }
      end
      sample "slices of ids, eager" do
        slices = Comment.select_map(:id).each_slice(7)
        slices.each { |ids| Comment.where(id: ids).eager(:post, :author).all.map { |comment| comment.post.title } }
      end
      sample "paged_each" do
        Comment.order(:id).paged_each(rows_per_fetch: 7) { |comment| comment.body }
      end
      sample "paged_each, by filter" do
        Comment.order(:id).paged_each(rows_per_fetch: 7, strategy: :filter) { |comment| comment.body }
      end
      sample "paged_each, walking" do
        Comment.order(:id).paged_each(rows_per_fetch: 7) do |comment|
          comment.post.title #=> n_plus_one 30 Comment#post
        end
      end
      sample "pages" do
        4.times { |page| Comment.order(:id).limit(7, page * 7).all }
      end
      sample "pages by key" do
        last = 0
        while (page = Comment.where { id > last }.order(:id).limit(7).all).any?
          last = page.last.id
        end
      end
      sample "a list for each record" do
        User.order(:id).all.each_with_index do |user, index|
          Tag.where(id: (1..2 + index).map { |number| user.id + number }).all #=> n_plus_one 5
        end
      end
      sample "a list of two for each record" do
        User.order(:id).all.each do |user|
          Tag.where(id: [user.id, user.id + 5]).all #=> n_plus_one 5
        end
      end
      sample "multi_insert of different lengths", writes: true do
        [1, 2, 3].each { |length| Tag.multi_insert(Array.new(length + 1) { { name: "bulk" } }) }
      end
      sample "import", writes: true do
        DB[:tags].import([:name], [["a"], ["b"], ["c"]])
        DB[:tags].import([:name], [["d"], ["e"]])
      end

      kind "writes"
      sample "create", writes: true do
        3.times { |number| Employee.create(user_id: number) } #=> write_loop 3
      end
      sample "update", writes: true do
        Tag.all.each do |tag|
          tag.update(name: "other") #=> write_loop 20
        end
      end
      sample "delete", writes: true do
        Tag.all.each(&:delete) #=> write_loop 20
      end
      sample "insert without a model", writes: true do
        3.times do |number|
          DB[:tags].insert(name: "new #{number}") #=> write_loop 3
        end
      end
      sample "update at once", writes: true do
        Tag.where(name: "tag").update(name: "other")
      end
      sample "uniqueness", writes: true do
        3.times do |number|
          Token.create(user_id: 1, secret: "new #{number}") #=> write_loop 3
        end
      end
      sample "rows of a join", writes: true do
        post = Post.first
        Tag.limit(3).all.each do |tag|
          post.add_tag(tag) #=> write_loop 3
        end
      end
      sample "one of each", writes: true do
        tag = Tag.create(name: "new")
        tag.update(name: "newer")
        tag.destroy
      end

      kind "the same again"
      sample "first" do
        3.times do
          User.first(name: "user 1") #=> duplicate 3
        end
      end
      sample "at two lines" do
        User.first(name: "user 1") #=> duplicate 2
        User.first(name: "user 1")
      end
      sample "count in a loop" do
        User.all.each do |user|
          [user.id, User.count] #=> duplicate 5
        end
      end
      sample "after a write", writes: true do
        Tag.count
        Tag.create(name: "one")
        Tag.count
      end
      sample "waiting for a change", wrong: "waiting is not recognised" do
        3.times { User.where(name: "ready").empty? && sleep(1e-9) }
      end
      sample "waiting for a time", wrong: "waiting is not recognised" do
        3.times do
          Post.where { updated_at > Time.now + 60 }.first
          sleep(1e-9)
        end
      end
      sample "refresh after update", writes: true do
        tag = Tag.first
        tag.update(name: "other")
        tag.refresh
        tag.update(name: "another")
        tag.refresh
      end
      sample "a constant" do
        2.times { DB.get(Sequel::CURRENT_TIMESTAMP) }
      end

      kind "statements"
      sample "fetch" do
        [1, 2, 3].each do |id|
          DB.fetch("SELECT * FROM tokens WHERE user_id = ?", id).all #=> n_plus_one 3
        end
      end
      sample "any letter case, comments and tags" do
        %w[SELECT select Select].each_with_index do |verb, id|
          DB["#{verb} * /* a tag='#{id}' */ FROM tokens WHERE user_id = #{id} -- line #{id}\n"].all #=> n_plus_one 3
        end
      end
      sample "a prepared statement" do
        statement = DB[:users].where(id: :$id).prepare(:first, :"user_by_id_#{DB.object_id}")
        [1, 2, 3].each do |id|
          statement.call(id: id) #=> n_plus_one 3
        end
      end
      sample "in a transaction" do
        DB.transaction do
          User.all.each { |user| user.posts.size } #=> n_plus_one 5 User#posts
        end
      end
      sample "save points" do
        DB.transaction do
          DB.transaction(savepoint: true) { User.first }
          DB.transaction(savepoint: true) { Post.first }
        end
      end
      sample "interleaved" do
        User.all.each do |user|
          user.employee #=> n_plus_one 5 User#employee
          Tag.first(name: user.name) #=> n_plus_one 5
          user.tokens #=> n_plus_one 5 User#tokens
        end
      end
      sample "the schema" do
        2.times { DB.schema(:users, reload: true) }
        2.times { DB.tables }
      end
      sample "raw INSERT in a loop", writes: true do
        3.times { |number| DB.run("INSERT INTO tags (name) VALUES ('raw #{number}')") } #=> write_loop 3
      end

      kind "other ways to run"
      sample "Enumerator" do
        numbers = Enumerator.new do |out|
          User.all.each { |user| out << user.employee.number } #=> n_plus_one 5 User#employee
        end
        numbers.to_a
      end
      sample "Enumerator, by next" do
        users = User.all
        numbers = Enumerator.new do |out|
          users.each { |user| out << user.employee.number } #=> n_plus_one 5 User#employee
        end
        5.times { numbers.next }
      end
      sample "lazy" do
        User.all.lazy.map { |user| user.employee }.first(4) #=> n_plus_one 4 User#employee
      end
      sample "Fiber" do
        User.all.each do |user|
          Fiber.new { user.employee }.resume #=> n_plus_one 5 User#employee
        end
      end
      sample "Thread" do
        User.all.map do |user|
          Thread.new { user.employee.number } #=> n_plus_one 5 User#employee
        end.map(&:value)
      end
    end
  end
end
