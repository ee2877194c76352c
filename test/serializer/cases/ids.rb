# frozen_string_literal: true

require_relative "../library"

# Ids other than the primary key: columns whose text differs between database and Ruby, nil, and duplicates.
module SerializerCases
  sources = { "records" => ->(relation) { relation.to_a }, "a relation" => ->(relation) { relation } }
  shown = ->(kit, column, source, opaque) {
    %w[Tag Author].each { |type| kit.define("#{type}Serializer") { attributes :name } }
    kit.define("BookSerializer") do
      set_id column
      attributes :pages
      attribute(:words) { |book| book.title.size } if opaque
      has_many :tags
      belongs_to :author
    end
    kit.of("BookSerializer", source.call(Book.order(:id)), include: %i[tags author])
  }
  each_way = ->(name, &block) {
    sources.to_a.product([false, true]) do |(what, source), opaque|
      add("ids: #{name}, #{what}#{", opaque" if opaque}") { |kit| block.call(kit, source, opaque) }
    end
  }
  %i[title pages status price printed_at sold facts].each do |column|
    each_way.call("of #{column}") { |kit, source, opaque| shown.call(kit, column, source, opaque) }
  end
  [false, true].each do |opaque|
    add("ids: of records that share some#{", opaque" if opaque}") { |kit| shown.call(kit, :author_id, sources["records"], opaque) }
  end
  { "that is nil" => 2, "that is empty" => 3 }.each do |name, id|
    each_way.call("one #{name}") do |kit, source, opaque|
      covers = Cover.where(id: [1, id]).order(:id)
      kit.define("BookSerializer") { attributes :pages }
      kit.define("CoverSerializer") do
        set_id :slug
        attribute(:words) { |cover| cover.book_id } if opaque
        belongs_to :book
      end
      kit.of("CoverSerializer", source.call(covers), include: [:book])
    end
  end
end
