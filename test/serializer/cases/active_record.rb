# frozen_string_literal: true

require_relative "../library"

# Records and relations of ActiveRecord.
module SerializerCases
  library = ->(kit) {
    kit.define("PublisherSerializer") { attributes :name }
    kit.define("AuthorSerializer") do
      attributes :name, :born_on
      attribute(:shout) { |author| author.name.upcase }
      belongs_to :publisher
      has_many :books
      belongs_to :mentor, serializer: :author
      has_many :students, serializer: :author
    end
    kit.define("CoverSerializer") { attributes :colour }
    kit.define("TagSerializer") { attributes :name }
    kit.define("NoteSerializer") do
      attributes :text
      belongs_to :about, polymorphic: true
    end
    kit.define("BookSerializer") do
      attributes :title, :pages, :price, :sold, :weight, :printed_at, :facts, :status
      belongs_to :author
      has_one :cover
      has_many :tags
      has_many :notes, lazy_load_data: true
    end
  }
  shown = ->(kit, name, resource, **options) {
    library.call(kit)
    kit.of(name, resource, **options)
  }
  sources = {
    "a record" => -> { Book.find(2) }, "an array" => -> { Book.order(:id).to_a }, "a loaded relation" => -> { Book.order(:id).load },
    "a relation" => -> { Book.order(:id) }, "a narrowed relation" => -> { Book.where(sold: true).order(id: :desc).limit(2) },
    "an empty relation" => -> { Book.none }, "an association" => -> { Author.find(1).books }
  }
  asked = {
    "nothing" => {}, "fields" => { fields: { book: %i[title author] } }, "include" => { include: %i[author cover tags] },
    "a nested include" => { include: %i[author.publisher tags] }, "a lazy include" => { include: [:notes] },
    "include and fields" => { include: [:author], fields: { book: [:author], author: %i[name shout] } },
    "meta and links" => { meta: { total: 6 }, links: { self: "/books" } },
    "a deep include" => { include: %i[author.publisher author.books.tags cover] }
  }
  sources.each do |source, resource|
    asked.each { |what, options|
      add("active record: #{source}, #{what}") { |kit|
        shown.call(kit, "BookSerializer", resource.call, **options)
      }
    }
  end

  plain = ->(kit, name, resource, **options) {
    kit.define("PublisherSerializer") { attributes :name }
    kit.define("AuthorSerializer") do
      attributes :name, :born_on
      belongs_to :publisher
      belongs_to :mentor, serializer: :author, lazy_load_data: true
    end
    kit.define("CoverSerializer") do
      attributes :colour
      attribute(:shout) { |cover| cover.colour.upcase }
    end
    kit.define("TagSerializer") { attributes :name }
    kit.define("NoteSerializer") { attributes :text }
    kit.define("BookSerializer") do
      attributes :title, :pages, :price, :sold, :weight, :printed_at, :facts, :status
      belongs_to :author
      has_one :cover
      has_many :tags
      has_many :notes, lazy_load_data: true
    end
    kit.of(name, resource, **options)
  }
  asked.merge(
    "no fields" => { fields: { book: [] } }, "attributes alone" => { fields: { book: [:title] } },
    "relationships alone" => { fields: { book: %i[tags notes] } }, "fields in another order" => { fields: { book: %i[tags pages title] } },
    "a lazy field" => { fields: { book: %i[title notes] } },
    "fields of included types" => { include: %i[author tags], fields: { author: [], tag: [:name] } },
    "an unknown nested include" => { include: [:"author.nope"] },
    "an include in another order" => { include: %i[tags notes cover author] }
  ).each do |what, options|
    { "records" => -> { Book.order(:id).to_a }, "a relation" => -> { Book.order(:id) } }.each do |source, resource|
      add("active record: #{source} of plain types, #{what}") { |kit| plain.call(kit, "BookSerializer", resource.call, **options) }
    end
  end

  people = { "a record" => -> { Author.find(1) }, "a relation" => -> { Author.order(:id) } }
  people.each do |source, resource|
    add("active record: #{source} that leads to itself") { |kit|
      shown.call(kit, "AuthorSerializer", resource.call, include: %i[mentor students.books])
    }
    add("active record: #{source} with a type by blocks") { |kit|
      shown.call(kit, "AuthorSerializer", resource.call, include: [:publisher])
    }
  end
  add("active record: polymorphic belongs_to of a relation") { |kit| shown.call(kit, "NoteSerializer", Note.order(:id), include: [:about]) }
  add("active record: polymorphic belongs_to of records") { |kit|
    shown.call(kit, "NoteSerializer", Note.order(:id).to_a, include: [:about])
  }

  bodies = {
    "a method that is no column" => proc { attributes :title, :heading },
    "a condition of the record" => proc { attribute :title, if: ->(book) { book.id.odd? } },
    "a transform" => proc {
      set_key_transform :camel_lower
      attributes :title, :printed_at
      has_many :tags
    },
    "another id" => proc {
      set_id :title
      attributes :pages
    },
    "an id of a block" => proc {
      set_id { |book| "b#{book.id}" }
      has_many :tags
    },
    "the id as an attribute" => proc { attributes :id, :title },
    "links and meta" => proc {
      attributes :title
      link(:self) { |book| "/books/#{book.id}" }
      meta { |book| { pages: book.pages } }
      has_many :tags, links: { related: ->(book) { "/books/#{book.id}/tags" } }, meta: { a: 1 }
    },
    "a block relationship" => proc { has_many(:tags) { |book| book.tags.reverse } },
    "a conditional relationship" => proc { has_many :tags, if: ->(book) { book.sold } },
    "a key" => proc { has_many :tags, key: :labels },
    "a record_type" => proc { has_many :tags, record_type: :label },
    "object_method_name" => proc { has_many :labels, object_method_name: :tags, id_method_name: :tag_ids, serializer: :tag },
    "id_method_name" => proc { belongs_to :author, id_method_name: :author_id },
    "lazy relationships" => proc {
      attributes :title
      has_many :tags, lazy_load_data: true
      belongs_to :author, lazy_load_data: true
    },
    "a renamed type" => proc {
      set_type :books
      attributes :title
      has_many :tags
    },
    "relationships alone" => proc {
      has_many :tags
      belongs_to :author
    },
    "nothing" => proc {},
    "an id by a method of the class" => proc {
      def self.id_from_record(book, _params = {}) = "#{book.id}-#{book.pages}"
      attributes :title
    },
    "params" => proc { attribute(:told) { |book, params| "#{params[:word]} #{book.title}" } }
  }
  bodies.each do |name, body|
    { "records" => -> { Book.order(:id).to_a }, "a relation" => -> { Book.order(:id) } }.each do |source, resource|
      add("active record: #{name}, of #{source}") do |kit|
        %w[Author Tag].each { |type| kit.define("#{type}Serializer") { attributes :name } }
        kit.define("BookSerializer", &body)
        kit.of("BookSerializer", resource.call, params: { word: "Hi" })
      end
      add("active record: #{name}, of #{source}, with all included") do |kit|
        %w[Author Tag].each { |type| kit.define("#{type}Serializer") { attributes :name } }
        kit.define("BookSerializer", &body)
        kit.of("BookSerializer", resource.call, include: (kit.get("BookSerializer").relationships_to_serialize || {}).keys,
                                                params: { word: "Hi" })
      end
    end
  end
end
