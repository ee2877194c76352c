# frozen_string_literal: true

module Benchmarks
  # Renders 1,000 loaded records with ten attributes that were read before (and so cast) or not.
  #
  #   Cards.new(1000).each { |title, ways, goals| … }   # creates its table in the connected database
  class Cards
    COLUMNS = { name: :string, email: :string, city: :string, phone: :string, note: :text, age: :integer, score: :integer, active: :boolean,
                seen_at: :datetime, joined_at: :datetime }.freeze
    SEEN = Time.utc(2024, 3, 1, 12)
    GOALS = { "Panko, nested" => 1.0, "jsonapi-serializer" => 3.0 }.freeze
    private_constant :SEEN

    def initialize(count)
      @count = count
      connection = ActiveRecord::Base.connection
      connection.create_table(:cards, force: true) { |table| COLUMNS.each { |name, type| table.public_send(type, name) } }
      Object.const_set(:Card, Class.new(ActiveRecord::Base))
      @resource = resource
      Card.insert_all!(Array.new(count) { |index| row(index) })
    end

    # @yieldparam title [String]
    # @yieldparam ways [Array<Way>]
    # @yieldparam goals [Hash]
    def each
      yield "#{@count} loaded records, ten attributes, none read before", ways(-> { records }), GOALS
      yield "#{@count} loaded records, ten attributes, each read before", ways(-> { records.each { |record| read(record) } }), GOALS
    end

    private

    def resource
      Class.new(Castellan::Resource) do
        model Card
        type "cards"
        attributes(*COLUMNS.keys)
      end
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
      COLUMNS.each_key { |name| record.public_send(name) }
    end

    def by_hand(record)
      { id: record.id, name: record.name, email: record.email, city: record.city, phone: record.phone, note: record.note, age: record.age,
        score: record.score, active: record.active, seen_at: record.seen_at.iso8601(3), joined_at: record.joined_at.iso8601(3) }
    end

    def ways(prepare)
      [Way.new("Castellan", :json_api, prepare: prepare) { |records| @resource.render(records) },
       Way.new("Castellan, nested", :nested, prepare: prepare) { |records| @resource.render(records, format: :nested) },
       Way.new("readers and JSON.generate by hand (the floor)", :nested, prepare: prepare) do |records|
         JSON.generate(records.map { |record| by_hand(record) })
       end,
       *Peers.nested(:Card).map { |name, write| Way.new("#{name}, nested", :nested, prepare: prepare, &write) },
       Way.new("jsonapi-serializer", :json_api, prepare: prepare) do |records|
         Peers.jsonapi_serializer(records, Peers::FastCardSerializer)
       end]
    end
  end
end
