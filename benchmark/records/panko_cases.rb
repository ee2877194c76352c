# frozen_string_literal: true

module Benchmarks
  # The cases of Panko's own benchmarks (benchmarks/bm_panko_json.rb): loaded posts with their authors.
  #
  #   PankoCases.new([50, 2300]).each { |title, ways, goals| … }   # creates its tables in the connected database
  class PankoCases
    POST = %i[id body title author_id created_at].freeze
    CASES = { simple: "five attributes", has_one: "with their author", method_call: "with a method", json: "with a JSON column" }.freeze
    private_constant :POST, :CASES

    class WriterSerializer < ::Panko::Serializer
      attributes :id, :name
    end

    class SimpleSerializer < ::Panko::Serializer
      attributes(*POST)
    end

    class HasOneSerializer < ::Panko::Serializer
      attributes(*POST)
      has_one :author, serializer: WriterSerializer
    end

    class MethodCallSerializer < ::Panko::Serializer
      attributes(*(POST - [:created_at]), :method_call)
      def method_call = object.id * 2
    end

    class JsonSerializer < ::Panko::Serializer
      attributes(*(POST - [:created_at]), :data)
    end

    PANKO = { simple: SimpleSerializer, has_one: HasOneSerializer, method_call: MethodCallSerializer, json: JsonSerializer }.freeze
    private_constant :PANKO

    def initialize(counts)
      @counts = counts
      create
      @resources = resources
    end

    # @yieldparam title [String]
    # @yieldparam ways [Array<Way>]
    # @yieldparam goals [Hash]
    def each
      @counts.product(CASES.to_a) do |count, (name, title)|
        posts = Written.order(:id).limit(count).preload(:author).to_a
        yield "Panko's #{count} posts, #{title}", ways(name, posts), { "Panko" => 1.0 }
      end
    end

    private

    def create
      connection = ActiveRecord::Base.connection
      connection.create_table(:writers, force: true) { |table| table.string :name }
      connection.create_table(:writtens, force: true) do |table|
        table.text :body
        table.string :title
        table.bigint :author_id
        table.json :data
        table.datetime :created_at
      end
      Object.const_set(:Writer, Class.new(ActiveRecord::Base))
      Object.const_set(:Written, Class.new(ActiveRecord::Base) { belongs_to :author, class_name: "Writer" })
      fill
    end

    def fill
      Writer.insert_all!(Array.new(@counts.max) { |index| { name: "Author #{index}" } })
      Written.insert_all!(Array.new(@counts.max) { |index|
        { body: "something about how password restrictions are evil, and less secure, and with the math to prove it. #{index}",
          title: "Your bank is does not know how to do security", author_id: index + 1, data: { a: 1, b: 2, c: 3 },
          created_at: Time.utc(2024) + index }
      })
    end

    def resources
      author = resource(Writer) { attributes :name }
      { simple: resource(Written) { attributes(*(POST - [:id])) },
        has_one: resource(Written) do
          attributes(*(POST - [:id]))
          belongs_to :author, resource: author
        end,
        method_call: resource(Written) do
          attributes(*(POST - %i[id created_at]))
          attribute(:method_call) { |post| post.id * 2 }
        end,
        json: resource(Written) { attributes(*(POST - %i[id created_at]), :data) } }
    end

    def resource(model, &body)
      Class.new(Castellan::Resource) do
        model model
        type model.table_name
        class_eval(&body)
      end
    end

    def by_hand(name, post)
      values = { id: post.id, body: post.body, title: post.title, author_id: post.author_id }
      values[:created_at] = post.created_at.iso8601(3) if %i[simple has_one].include?(name)
      values[:author] = { id: post.author.id, name: post.author.name } if name == :has_one
      values[:method_call] = post.id * 2 if name == :method_call
      values[:data] = post.data if name == :json
      values
    end

    def ways(name, posts)
      include = name == :has_one ? [:author] : []
      [Way.new("Castellan, nested", :nested) { @resources[name].render(posts, include: include, format: :nested) },
       Way.new("readers and JSON.generate by hand (the floor)", :nested) { JSON.generate(posts.map { |post| by_hand(name, post) }) },
       Way.new("Panko", :nested) { ::Panko::ArraySerializer.new(posts, each_serializer: PANKO[name]).to_json }]
    end
  end
end
