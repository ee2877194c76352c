# frozen_string_literal: true

require_relative "peers"
require_relative "castellan_ways"

module Benchmarks
  # The works on loaded records: 1,000 records with ten attributes, each attribute read before (its value is cast) or
  # not.
  #
  #   LoadedWorks.new(records: 1000).each { |work, title, ways| … }   # makes its own table in the database that is open
  class LoadedWorks
    include CastellanWays

    COLUMNS = { name: :string, email: :string, city: :string, phone: :string, note: :text, age: :integer, score: :integer, active: :boolean,
                seen_at: :datetime, joined_at: :datetime }.freeze
    SEEN = Time.utc(2024, 3, 1, 12)
    private_constant :SEEN

    def initialize(records:)
      @count = records
      create
    end

    # @yieldparam work [Symbol]
    # @yieldparam title [String]
    # @yieldparam ways [Array<Way>]
    def each
      seen = -> { records.each { |record| read(record) } }
      yield :loaded_read, "#{@count} records that are loaded, ten attributes, each read before", ways(seen)
      yield :loaded_unread, "#{@count} records that are loaded, ten attributes, none read before", ways(-> { records })
    end

    private

    def create
      connection = ActiveRecord::Base.connection
      connection.create_table(:cards, force: true) { |table| COLUMNS.each { |name, type| table.public_send(type, name) } }
      require_relative "card_resource"
      Card.insert_all!(Array.new(@count) { |index| row(index) })
    end

    def row(index)
      { name: "Ada Lovelace #{index}", email: "ada.#{index}@example.org", city: "Ockham", phone: "+44 20 #{index}",
        note: "No. #{index} – \"quoted\"", age: index % 90, score: index * 17, active: index.odd?, seen_at: SEEN + index,
        joined_at: SEEN - (index * 86_400) }
    end

    def records
      Card.order(:id).to_a
    end

    def read(record)
      Peers::CARD.each { |name| record.public_send(name) }
    end

    def ways(prepare)
      [Way.new("Castellan", :json_api, prepare: prepare) { |records| CardResource.render(records) },
       Way.new("Castellan, Ruby encoder", :json_api, prepare: prepare) { |records| in_ruby { CardResource.render(records) } },
       Way.new("Castellan, nested", :nested, prepare: prepare) { |records| CardResource.render(records, format: :nested) },
       *Peers.nested(:Card).map { |name, write| Way.new("#{name}, nested", :nested, prepare: prepare, &write) },
       Way.new("jsonapi-serializer", :json_api, prepare: prepare) do |records|
         Peers.jsonapi_serializer(records, Peers::FastCardSerializer)
       end]
    end
  end
end
