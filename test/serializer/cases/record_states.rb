# frozen_string_literal: true

require "delegate"
require_relative "../library"

# Records that differ in memory from their rows, and relations as applications build them.
module SerializerCases
  shelf = ->(kit, resource, **options) {
    kit.define("AuthorSerializer") do
      attributes :name
      has_many :books
    end
    kit.define("CoverSerializer") { attributes :colour }
    kit.define("TagSerializer") { attributes :name }
    kit.define("NoteSerializer") { attributes :text }
    kit.define("BookSerializer") do
      attributes :title, :pages
      belongs_to :author
      has_one :cover
      has_many :tags
      has_many :notes
    end
    kit.of("BookSerializer", resource, **options)
  }
  shouting = Module.new { def title = super.upcase }
  few_tags = Module.new {
    def tags = super.first(1)
    def tag_ids = tags.map(&:id)
  }
  ghost = Class.new {
    def id = 9
    def name = "Ghost"
    def book_ids = []
    def books = []
  }
  preload = ->(books, name, scope = nil) {
    ActiveRecord::Associations::Preloader.new(records: books, associations: [name], scope: scope).call
  }
  states = {
    "an attribute that was changed" => ->(books) { books[0].title = "Changed" },
    "a foreign key that was changed" => ->(books) { books[0].author_id = 3 },
    "a foreign key that was changed after its record was loaded" => ->(books) { books[0].tap(&:author).author_id = 3 },
    "a foreign key that leads nowhere" => ->(books) { books[0].author_id = 999 },
    "a foreign key that leads nowhere, preloaded" => ->(books) {
      books[0].author_id = 999
      preload.call(books, :author)
    },
    "another record in place of the one of the foreign key" => ->(books) { books[0].association(:author).target = Author.find(3) },
    "an object that is no record in its place" => ->(books) { books[0].association(:author).target = ghost.new },
    "a record that was assigned" => ->(books) { books[0].author = Author.find(3) },
    "a record that was assigned and not saved" => ->(books) { books[0].author = Author.new(name: "New") },
    "a record that was built" => ->(books) { books[1].notes.build(text: "Built") },
    "a record that was built where the others are loaded" => ->(books) { books[1].notes.load.build(text: "Built") },
    "a has_one that was put in place" => ->(books) { books[0].association(:cover).target = Cover.new(colour: "none") },
    "a has_one that was taken away" => ->(books) { books[1].association(:cover).target = nil },
    "a book that was built for an author who is included" => ->(books) { books[1].author.books.build(title: "Built") },
    "preloading with a scope" => ->(books) { preload.call(books, :tags, Tag.where(name: "ruby")) },
    "preloading in another order" => ->(books) { preload.call(books, :notes, Note.order(id: :desc)) },
    "some that are loaded" => ->(books) { books[2].tags.load },
    "a module that extends the records" => ->(books) { books.each { |book| book.extend(shouting) } },
    "a module that extends the records' associations" => ->(books) { books.each { |book| book.extend(few_tags) } },
    "a module that extends a related record" => ->(books) {
      books[0].author.extend(Module.new { def name = super.upcase })
    },
    "a method of one record" => ->(books) { books[2].define_singleton_method(:pages) { -1 } },
    "an id of one record" => ->(books) { books[2].define_singleton_method(:id) { "third" } },
    "the same record twice" => ->(books) { books.push(books[0], books[3]) },
    "the same record in another object" => ->(books) { books << Book.find(books[3].id).tap { |book| book.title = "Other" } },
    "a decorated record" => ->(books) { books << SimpleDelegator.new(books[0]) },
    "a record that was not saved" => ->(books) { books << Book.new(title: "New", author_id: 1) },
    "a record that is read only" => ->(books) { books.each(&:readonly!) },
    "a record of another model" => ->(books) { books << Author.find(1) }
  }
  asked = { "nothing" => {}, "includes" => { include: %i[author cover tags notes] }, "a deep include" => { include: [:"author.books"] } }
  states.each do |state, change|
    asked.each do |what, options|
      { "plain" => false, "opaque" => true }.each do |kind, opaque|
        add("record states: #{state}, #{what}, #{kind}") do |kit|
          books = Book.order(:id).first(4)
          change.call(books)
          serializer = shelf.call(kit, books, **options)
          kit.get("BookSerializer").attribute(:words) { |book| book.title.size } if opaque
          serializer
        end
      end
    end
  end

  {
    "nothing that was changed" => ->(books) {},
    "an owner who was taken away" => ->(books) { books[0].author = nil },
    "an owner who was taken away after they were loaded" => ->(books) { books[0].tap { |book| book.siblings.load }.author = nil },
    "another owner" => ->(books) { books[0].author = Author.find(3) },
    "another owner's key" => ->(books) { books[0].author_id = 3 },
    "another id" => ->(books) { books[0].id = 99 }
  }.each do |state, change|
    { "by id" => :id, "by another column" => :title }.each do |way, id|
      add("record states: through an owner, #{state}, #{way}") do |kit|
        books = Book.preload(:author).order(:id).first(4)
        change.call(books)
        kit.define("BookSerializer") do
          set_id id
          attributes :pages
          has_many :siblings, serializer: kit.define("SiblingSerializer") { set_type :book }
          has_one :publisher, serializer: kit.define("PublisherSerializer") { attributes :name }
          has_many :notes, serializer: kit.define("NoteSerializer") { attributes :text }
        end
        kit.of("BookSerializer", books, include: [:notes])
      end
    end
  end
  add("record states: another value of the column that is the id") do |kit|
    books = Book.order(:id).first(4).each { |book| book.title = "New #{book.id}" }
    kit.define("BookSerializer") do
      set_id :title
      has_many :notes, serializer: kit.define("NoteSerializer") { attributes :text }
    end
    kit.of("BookSerializer", books, include: [:notes])
  end

  {
    "of an association, narrowed" => -> { Author.find(1).books.where(sold: true) },
    "of an association, in another order" => -> { Author.find(1).books.reorder(id: :desc) },
    "of an association of a record that is new" => -> { Author.new.books.where(sold: true) },
    "with some columns" => -> { Book.select(:id, :title, :pages, :author_id).order(:id) },
    "with another meaning of a column" => -> { Book.select("books.*, 'over' AS title").order(:id) },
    "with too few columns" => -> { Book.select(:id).order(:id) },
    "of another source" => -> { Book.from("(SELECT * FROM books WHERE pages > 100) AS books").order(:id) },
    "that is grouped" => -> { Book.group(:id).order(:id) },
    "that eager-loads" => -> { Book.eager_load(:author, :cover).order(:id) },
    "with a join that finds each once" => -> { Book.joins(:author).merge(Author.where(name: "Ada Lovelace")).order(:id) },
    "that was loaded with a join that finds some twice" => -> { Book.joins(:tags).order(:id).load },
    "that is a model" => -> { Book },
    "in batches" => -> { Book.in_batches(of: 2).first.order(:id) },
    "that is reversed" => -> { Book.order(:id).reverse_order }
  }.each do |name, relation|
    asked.each { |what, options| add("relation: one #{name}, #{what}") { |kit| shelf.call(kit, relation.call, **options) } }
  end
end
