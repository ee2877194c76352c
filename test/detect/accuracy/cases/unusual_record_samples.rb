# frozen_string_literal: true

require_relative "../records"

# Less common code with ActiveRecord, on unusual models.
module Accuracy
  module Records
    module UnusualRecordSamples
      extend Samples

      GROUP = "ActiveRecord"

      kind "unusual associations"
      sample "has_many by another key" do
        Library.all.each { |library| library.shelves.to_a } #=> n_plus_one 4 Library#shelves
      end
      sample "belongs_to by another key" do
        Shelf.all.each { |shelf| shelf.library.code } #=> n_plus_one 8 Shelf#library
      end
      sample "through, without a join" do
        Library.all.each do |library|
          library.books.to_a #=> n_plus_one 8 Library#books
        end
      end
      sample "through, with a source" do
        Library.all.each { |library| library.titles.to_a } #=> n_plus_one 4 Library#titles
      end
      sample "a scope that reads its owner" do
        Library.all.each { |library| library.recent_cards.to_a } #=> n_plus_one 4 Library#recent_cards
      end
      sample "an enum" do
        Shelf.all.each do |shelf|
          shelf.books.lent.count #=> n_plus_one 8 Shelf#books
        end
      end
      sample "many?" do
        Shelf.all.map { |shelf| shelf.books.many? } #=> n_plus_one 8 Shelf#books
      end
      sample "none?" do
        Shelf.all.map { |shelf| shelf.books.none? } #=> n_plus_one 8 Shelf#books
      end
      sample "grouped count of each" do
        Shelf.all.map { |shelf| shelf.books.group(:state).count } #=> n_plus_one 8 Shelf#books
      end
      sample "average of each" do
        Shelf.all.sort_by { |shelf| shelf.books.average(:id) } #=> n_plus_one 8 Shelf#books
      end
      sample "one of each, by its title" do
        Shelf.all.map { |shelf| shelf.books.find_by(title: "book 1") } #=> n_plus_one 8 Shelf#books
      end
      sample "several titles of one shelf" do
        shelf = Shelf.all.to_a.first
        ["book 0", "book 1", "book 2"].map { |title| shelf.books.find_by(title: title) } #=> n_plus_one 3
      end
      sample "where the owner is given" do
        Shelf.all.map { |shelf| Book.where(shelf: shelf).count } #=> n_plus_one 8 Shelf#books
      end
      sample "where only ids are known" do
        Shelf.ids.map { |id| Book.where(shelf_id: id).count } #=> n_plus_one 8
      end
      sample "the siblings of each" do
        Book.limit(4).order(:id).each do |book|
          book.shelf.books.count #=> n_plus_one 4 Book#shelf, n_plus_one 4 Shelf#books
        end
      end
      sample "included, then ordered in the database" do
        Shelf.includes(:books).map { |shelf| shelf.books.order(:title).first } #=> n_plus_one 8 Shelf#books
      end
      sample "included in each turn" do
        Library.all.each do |library|
          library.shelves.includes(:books).map { |shelf| shelf.books.size } #=> n_plus_one 4 Library#shelves
        end
      end
      sample "a callback that asks" do
        Book.noted = true
        Book.limit(3).to_a #=> n_plus_one 3 nil elsewhere
      ensure
        Book.noted = false
      end
      sample "two siblings" do
        Library.limit(2).each do |library|
          [library.shelves.count, library.shelves.first] #=> n_plus_one 2 Library#shelves, n_plus_one 2 Library#shelves
        end
      end
      sample "as_json with an association" do
        Shelf.all.as_json(include: :books) #=> n_plus_one 8 Shelf#books
      end
      sample "as_json, included" do
        Shelf.includes(:books).as_json(include: :books)
      end
      sample "extending a relation" do
        Shelf.where(name: "shelf 0").merge(Shelf.order(:id)).each { |shelf| shelf.books.load } #=> n_plus_one 4 Shelf#books
      end
      sample "records loaded by SQL" do
        Shelf.find_by_sql("SELECT * FROM shelves").each { |shelf| shelf.books.to_a } #=> n_plus_one 8 Shelf#books
      end
      sample "records found by ids" do
        Shelf.find(Shelf.ids).each { |shelf| shelf.books.to_a } #=> n_plus_one 8 Shelf#books
      end
      sample "records grouped in Ruby" do
        Book.all.group_by { |book| book.shelf.name } #=> n_plus_one 24 Book#shelf
      end
      sample "in_batches, each record" do
        Book.in_batches(of: 7).each_record { |book| book.title }
      end
      sample "find_each of an enumerator" do
        Book.find_each(batch_size: 7).with_index { |book, index| [book.title, index] }
      end
      sample "find_each in slices" do
        Book.find_each(batch_size: 7).each_slice(5) { |books| books.map(&:title) }
      end
      sample "batches with a join" do
        Book.joins(:shelf).where(shelves: { name: "shelf 0" }).find_each(batch_size: 5) { |book| book.title }
      end
      sample "in_batches of pluck, then a list of each" do
        Book.in_batches(of: 7) { |books| Shelf.where(id: books.pluck(:shelf_id)).to_a }
      end
      sample "batches of batches" do
        Shelf.in_batches(of: 3) do |shelves|
          Book.where(shelf_id: shelves.ids).to_a
        end
      end
      sample "slices, found" do
        Book.ids.each_slice(5) { |ids| Book.find(ids) }
      end
      sample "slices, mapped to others" do
        Shelf.ids.each_slice(3) { |ids| Book.where(shelf_id: ids).group(:shelf_id).count }
      end

      sample "pages of each" do
        User.all.to_a.each do |user|
          user.posts.find_each(batch_size: 1) { |post| post.title } #=> n_plus_one 5 User#posts
        end
      end
      sample "a list for each of each" do
        User.all.each do |user|
          user.posts.each do |post| #=> n_plus_one 5 User#posts
            Tag.where(id: [post.id, post.id + 1]).to_a #=> n_plus_one 10
          end
        end
      end
      sample "a range for each" do
        User.order(:id).each do |user|
          Tag.where(id: user.id..user.id + 2).to_a #=> n_plus_one 5
        end
      end

      kind "unusual writes"
      sample "different columns", writes: true do
        changes = [{ name: "a" }, { last_seen: 7 }, { name: "b", last_seen: 8 }]
        User.order(:id).first(3).zip(changes) do |user, change|
          user.update!(change) #=> write_loop 3
        end
      end
      sample "counted before and after a cascade", writes: true do
        Token.count
        User.where(name: "nobody").delete_all
        Token.count
      end
      sample "asked again in a loop that writes", writes: true do
        3.times do |number|
          User.find_by(name: "user 1") #=> duplicate 3
          Tag.create!(name: "new #{number}") #=> write_loop 3
        end
      end
      sample "create through an association", writes: true do
        Library.all.each { |library| library.cards.create!(code: "new") } #=> write_loop 4
      end
      sample "build without saving" do
        Library.all.each { |library| library.cards.build(code: "new") }
      end
      sample "where and update_all in a loop", writes: true do
        Library.all.each do |library|
          Card.where(library_id: library.id).update_all(code: "new") #=> write_loop 4
        end
      end
      sample "where and delete_all in a loop", writes: true do
        Library.ids.each { |id| Card.where(library_id: id).delete_all } #=> write_loop 4
      end
      sample "update in a batch", writes: true do
        Card.find_each(batch_size: 2) { |card| card.update!(code: "new") } #=> write_loop 4
      end
      sample "dependents are destroyed", writes: true do
        Library.all.to_a.each(&:destroy!) #=> write_loop 4, n_plus_one 4 Library#cards
      end
      sample "a required owner is looked up", writes: true do
        Shelf.ids.first(3).each { |id| Book.create!(shelf_id: id, title: "new") } #=> write_loop 3
      end
      sample "increment", writes: true do
        Employee.all.each { |employee| employee.increment!(:number) } #=> write_loop 5
      end
      sample "exec_update", writes: true do
        3.times { |number| Base.connection.update("UPDATE cards SET code = 'x' WHERE id = #{number}") } #=> write_loop 3
      end
      sample "a log from two places", writes: true do
        Tag.create!(name: "begin")
        User.first.touch
        Tag.create!(name: "end")
      end
      sample "upsert_all in slices", writes: true do
        (1..10).each_slice(4) { |ids| Tag.upsert_all(ids.map { |id| { id: id, name: "up" } }) }
      end
      sample "a unique record for each", writes: true do
        3.times do |number|
          Tag.create_or_find_by!(name: "tag #{number}") #=> write_loop 3
        end
      end

      kind "unusual statements"
      sample "annotated" do
        User.ids.each do |id|
          Token.annotate("for #{id}").where(user_id: id).to_a #=> n_plus_one 5
        end
      end
      sample "a common table expression" do
        User.ids.each do |id|
          Base.connection.select_all("WITH mine AS (SELECT * FROM posts WHERE user_id = #{id}) SELECT * FROM mine") #=> n_plus_one 5
        end
      end
      sample "from a subquery" do
        2.times { |number| Post.from(Post.where(user_id: number + 1), :posts).to_a } #=> n_plus_one 2
      end
      sample "a variable with the name of the table" do
        users = User.limit(2).order(:id).to_a
        users = users.map { |user| User.find_by(name: users.last.name + user.name) } #=> n_plus_one 2
        users.compact
      end
      sample "two tables in turns" do
        2.times do |number|
          User.find_by(name: "user #{number}") #=> n_plus_one 2
          Tag.find_by(name: "tag #{number}") #=> n_plus_one 2
        end
      end
      sample "a condition with OR" do
        %w[a b c].each do |name|
          Tag.where(name: name).or(Tag.where(id: 1)).to_a #=> n_plus_one 3
        end
      end
      sample "LIKE" do
        %w[a b c].each do |name|
          Tag.where("name LIKE ?", "#{name}%").to_a #=> n_plus_one 3
        end
      end
      sample "IS NULL" do
        3.times { Tag.where(name: nil).to_a } #=> duplicate 3
      end
      sample "a range of time for each" do
        (1..3).each do |day|
          Post.where(updated_at: Time.utc(2020, 1, day)..Time.utc(2020, 1, day + 1)).count #=> n_plus_one 3
        end
      end
      sample "not the first, then the second" do
        User.where.not(id: 1).to_a
        User.where.not(id: 2).to_a
      end
      sample "exists? and then load, once" do
        posts = Post.where(user_id: 1)
        posts.to_a if posts.exists?
      end
      sample "count and page" do
        [Post.count, Post.order(:id).limit(5).to_a]
      end
      sample "the same page, counted twice" do
        posts = Post.where(user_id: 1)
        [posts.count, posts.count] #=> duplicate 2
      end

      kind "unusual ways to run"
      sample "a thread pool of one's own" do
        queue = Queue.new
        User.all.to_a.each { |user| queue << user }
        workers = Array.new(2) do
          Thread.new do
            until queue.empty?
              user = queue.pop(true) rescue break
              Base.connection_pool.with_connection { user.posts.to_a } #=> n_plus_one 5 User#posts
            end
          end
        end
        workers.each(&:join)
      end
      sample "a thread in a thread" do
        users = User.all.to_a
        Thread.new do
          Thread.new do
            Base.connection_pool.with_connection { users.each { |user| user.employee.number } } #=> n_plus_one 5 User#employee
          end.join
        end.join
      end
      sample "a scope of each, in a thread of each" do
        User.all.to_a.map do |user|
          Thread.new do
            Base.connection_pool.with_connection { user.posts.where(published: true).to_a } #=> n_plus_one 5 User#posts
          end
        end.each(&:join)
      end
      sample "an enumerator of enumerators" do
        posts = User.all.to_a.each_slice(2).flat_map { |users| users.map { |user| user.posts.to_a } } #=> n_plus_one 5 User#posts
        posts.flatten
      end
      sample "a generator of external iteration" do
        users = User.all.to_a.each
        loop { users.next.employee } #=> n_plus_one 5 User#employee
      end
      sample "a method that calls itself" do
        count = ->(users) { users.empty? ? 0 : users.first.posts.size + count.call(users.drop(1)) } #=> n_plus_one 5 User#posts
        count.call(User.all.to_a)
      end
      sample "inject" do
        User.all.inject(0) { |sum, user| sum + user.tokens.count } #=> n_plus_one 5 User#tokens
      end
      sample "define_method and send" do
        User.all.each do |user|
          %i[employee tokens].each { |name| Array(user.public_send(name)) } #=> n_plus_one 5 User#employee, n_plus_one 5 User#tokens
        end
      end
      sample "a timeout" do
        User.all.to_a.each do |user|
          Timeout.timeout(60) { user.posts.to_a } #=> n_plus_one 5 User#posts
        end
      end
    end
  end
end
