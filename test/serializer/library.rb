# frozen_string_literal: true

require "active_record"

# Records of ActiveRecord for the cases, in SQLite in memory or in the database SERIALIZER_DATABASE.
module SerializerCases
  # The base class of the library's models.
  class Record < ActiveRecord::Base
    self.abstract_class = true
    establish_connection(ENV.fetch("SERIALIZER_DATABASE", "sqlite3::memory:"))
  end

  Record.connection.instance_exec do
    create_table(:publishers) { |t| t.string :name }
    create_table(:authors) { |t|
      t.string :name
      t.date :born_on
      t.integer :publisher_id
      t.integer :mentor_id
    }
    create_table(:books) do |t|
      t.string :title
      t.integer :pages
      t.decimal :price, precision: 8, scale: 2
      t.boolean :sold
      t.float :weight
      t.datetime :printed_at
      t.json :facts
      t.integer :author_id
      t.integer :status
    end
    create_table(:covers) { |t|
      t.string :colour
      t.string :slug
      t.integer :book_id
    }
    create_table(:tags) { |t| t.string :name }
    create_table(:taggings) { |t|
      t.integer :book_id
      t.integer :tag_id
    }
    create_table(:notes) { |t|
      t.string :text
      t.string :about_type
      t.integer :about_id
    }
  end

  class Publisher < Record
    has_many :authors, -> { order(:id) }
  end

  class Author < Record
    belongs_to :publisher
    belongs_to :mentor, class_name: "SerializerCases::Author"
    has_many :students, -> { order(:id) }, class_name: "SerializerCases::Author", foreign_key: :mentor_id
    has_many :books, -> { order(:id) }
    has_many :notes, -> { order(:id) }, as: :about

    def initials = name.split.map { |word| word[0] }.join
  end

  class Book < Record
    belongs_to :author
    has_one :cover
    has_many :taggings
    has_many :tags, -> { order(:id) }, through: :taggings
    has_many :notes, -> { order(:id) }, as: :about
    has_many :siblings, through: :author, source: :books
    has_one :publisher, through: :author
    enum :status, { draft: 0, printed: 1 }

    def heading = "#{title} (#{pages})"
  end

  class Cover < Record
    belongs_to :book
  end

  class Tag < Record; end

  class Tagging < Record
    belongs_to :book
    belongs_to :tag
  end

  class Note < Record
    belongs_to :about, polymorphic: true
  end

  publishers = %w[Castle Tower].map { |name| Publisher.create!(name: name) }
  authors = ["Ada Lovelace", "Grace Hopper", "Edsger Dijkstra"].map.with_index do |name, index|
    Author.create!(name: name, born_on: Date.new(1815 + index, 12, 10), publisher: publishers[index % 2], mentor_id: index.zero? ? nil : 1)
  end
  tags = %w[ruby sql <b>&amp;].map { |name| Tag.create!(name: name) }
  6.times do |number|
    book = Book.create!(title: "Book \u2028 <#{number}> \"é\"", pages: 100 * number, price: number + BigDecimal("0.25"), sold: number.even?,
                        weight: number / 4.0, printed_at: Time.utc(2024, 1, 31, 10, number, 0.125r),
                        facts: { "n" => number, "list" => [1, nil] }, author: authors[number % 3], status: number % 2)
    Cover.create!(book: book, colour: "blue", slug: { 1 => "first", 3 => nil, 5 => "" }[number]) if number.odd?
    tags.first(number % 4).each { |tag| Tagging.create!(book: book, tag: tag) }
    Note.create!(about: number.even? ? book : book.author, text: "Note #{number}")
  end
end
