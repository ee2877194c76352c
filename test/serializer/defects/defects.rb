# frozen_string_literal: true

require "active_support/cache"
require "active_support/core_ext/numeric/time"
require_relative "../library"

# Bugs of jsonapi-serializer. Each case returns a small value, which DefectsTest expects of both libraries.
module SerializerCases
  names = ->(document) { document[:data][:attributes] }
  kept = ->(kit, name, superclass = nil, store: ActiveSupport::Cache::MemoryStore.new, &body) {
    kit.define(name, superclass) do
      cache_options store: store, namespace: "test", expires_in: 60
      class_eval(&body) if body
    end
  }
  book = -> { Book.find(1) }

  add("a cache with params") do |kit|
    kept.call(kit, "BookSerializer") { attribute(:told) { |_, params| params[:word] } }
    %w[one two].map { |word| names.call(kit.of("BookSerializer", book.call, params: { word: word }).serializable_hash)[:told] }
  end
  add("a cache with params of a record") do |kit|
    kept.call(kit, "BookSerializer") { attribute(:told) { |_, params| params[:reader].name } }
    [1, 2].map { |id| names.call(kit.of("BookSerializer", book.call, params: { reader: Author.find(id) }).serializable_hash)[:told] }
  end
  add("a cache with params that cannot be a key") do |kit|
    kept.call(kit, "BookSerializer") { attribute(:told) { |_, params| params[:tell].call } }
    %w[one two].map { |word| names.call(kit.of("BookSerializer", book.call, params: { tell: -> { word } }).serializable_hash)[:told] }
  end
  add("a cache of two classes") do |kit|
    store = ActiveSupport::Cache::MemoryStore.new
    kept.call(kit, "BookSerializer", store: store) { attributes :title }
    kept.call(kit, "ShortBookSerializer", store: store) { attributes :pages }
    %w[Book ShortBook].map { |name| names.call(kit.of("#{name}Serializer", book.call).serializable_hash).keys }
  end
  add("a cache of a class and its superclass") do |kit|
    kept.call(kit, "BookSerializer") { attributes :title }
    kit.define("FullBookSerializer", "BookSerializer") { attributes :pages }
    %w[Book FullBook].map { |name| names.call(kit.of("#{name}Serializer", book.call).serializable_hash).keys }
  end
  add("a cache of sets of fields whose names join to one") do |kit|
    kept.call(kit, "BookSerializer") do
      attribute(:a_b) { 1 }
      attribute(:c) { 2 }
      attribute(:a) { 3 }
      attribute(:b_c) { 4 }
    end
    [%i[a_b c], %i[a b_c]].map { |fields| names.call(kit.of("BookSerializer", book.call, fields: { book: fields }).serializable_hash) }
  end
  add("a cache keeps what it can") do |kit|
    asked = 0
    kept.call(kit, "BookSerializer") { attribute(:asked) { asked += 1 } }
    Array.new(2) { names.call(kit.of("BookSerializer", book.call).serializable_hash)[:asked] }
  end

  lazy = ->(kit) {
    kit.define("NoteSerializer") { attributes :text }
    kit.define("PublisherSerializer") { has_many :authors, lazy_load_data: true }
    kit.define("AuthorSerializer") do
      has_many :books, lazy_load_data: true
      belongs_to :publisher, lazy_load_data: true
    end
    kit.define("BookSerializer") do
      belongs_to :author, lazy_load_data: true
      has_many :notes, lazy_load_data: true
    end
  }
  linkage = ->(objects, type) {
    objects.select { |one| one[:type] == type }.to_h { |one|
      [one[:id], one[:relationships].select { |_, value|
        value.key?(:data)
      }.keys]
    }
  }
  add("linkage of a lazy relationship that is included below another") do |kit|
    lazy.call(kit)
    linkage.call(kit.of("BookSerializer", Book.order(:id).to_a, include: %i[author author.publisher]).serializable_hash[:included],
                 :author)
  end
  add("linkage of a lazy relationship that is included below another, of a relation") do |kit|
    lazy.call(kit)
    document = kit.of("BookSerializer", Book.order(:id), include: %i[author author.publisher])
    included = document.serializable_hash[:included]
    if document.respond_to?(:explain)
      included = JSON.parse(document.to_json, symbolize_names: true)[:included].each { |one|
        one[:type] = one[:type].to_sym
      }
    end
    linkage.call(included, :author)
  end
  add("linkage of a lazy relationship of which only the next step is named") do |kit|
    lazy.call(kit)
    linkage.call(kit.of("BookSerializer", Book.find(1), include: [:"author.publisher"]).serializable_hash.values_at(:data), :book)
  end
  add("linkage of a record that two paths lead to") do |kit|
    kit.define("PublisherSerializer") { attributes :name }
    kit.define("AuthorSerializer") do
      belongs_to :publisher, lazy_load_data: true
      belongs_to :mentor, serializer: :author
    end
    kit.define("BookSerializer") { belongs_to :author }
    included = kit.of("BookSerializer", Book.order(:id).first(3),
                      include: %i[author author.mentor.publisher]).serializable_hash[:included]
    linkage.call(included, :author).transform_values { |names| names.include?(:publisher) }
  end
  add("a record that many lead to is walked once") do |kit|
    walked = 0
    kit.define("PublisherSerializer")
    kit.define("AuthorSerializer") do
      belongs_to(:publisher, serializer: :publisher) do |author|
        walked += 1
        author.publisher
      end
    end
    kit.define("BookSerializer") { belongs_to :author }
    author = Author.find(1)
    books = author.books.to_a.each { |one| one.association(:author).target = author }
    kit.of("BookSerializer", books * 10, include: [:"author.publisher"]).serializable_hash
    walked
  end
  add("a question that is asked twice") do |kit|
    kit.define("AuthorSerializer") { attributes :name }
    kit.define("BookSerializer") { belongs_to :author }
    document = kit.of("BookSerializer", book.call, include: [:author])
    Array.new(2) { document.serializable_hash[:included].size }
  end
  add("a struct that is related") do |kit|
    kit.define("CrewSerializer") { attributes :name }
    kit.define("MovieSerializer") { belongs_to(:crew) { Crew.new(id: 3, name: "Sound") } }
    kit.of("MovieSerializer", movie, include: [:crew]).serializable_hash[:included]
  end
  add("a namespace that is a block") do |kit|
    kit.define("BookSerializer") do
      cache_options store: Struct.new(:seen) {
        def fetch(_, **options)
          (seen << options[:namespace]) && yield
        end
      }.new([]), namespace: -> { "v1.0" }
      attributes :title
    end
    kit.of("BookSerializer", book.call, fields: { book: [:title] }).serializable_hash
    kit.get("BookSerializer").cache_store_instance.seen.first[/\A.{4}/]
  end
end
