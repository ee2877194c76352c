# frozen_string_literal: true

# Relationships: linkage, serializers, polymorphism, links, meta, conditions.
module SerializerCases
  related = ->(kit, resource = movie, **options, &body) {
    kit.define("ActorSerializer") { attributes :name }
    kit.define("StudioSerializer") do
      attributes :name
      has_many :movies
    end
    kit.define("DirectorSerializer") { attributes :name }
    kit.define("PerformerSerializer") {
      set_type :performer
      attributes :email
    }
    kit.define("ComedianSerializer") { attribute(:funny) { true } }
    kit.define("MovieSerializer", &body)
    kit.of("MovieSerializer", resource, **options)
  }

  bodies = {
    "has_many" => proc { has_many :actors },
    "belongs_to" => proc { belongs_to :studio },
    "has_one" => proc { has_one :studio },
    "belongs_to that is nil" => proc { belongs_to :director },
    "several" => proc {
      has_many :actors
      belongs_to :studio
      belongs_to :director
    },
    "a name given as a string" => proc { has_many "actors" },
    "key" => proc { has_many :actors, key: :cast },
    "record_type" => proc { has_many :actors, record_type: :performer },
    "record_type without a serializer of the name" => proc {
      belongs_to :owner, record_type: :user, id_method_name: :studio_id, serializer: :studio
    },
    "serializer by symbol" => proc { has_many :actors, serializer: :performer },
    "serializer by string" => proc { has_many :actors, serializer: "performer" },
    "serializer that is not there" => proc { has_many :actors, serializer: :nobody },
    "serializer of the name that is not there" => proc { has_many :extras, id_method_name: :actor_ids },
    "id_method_name" => proc { has_many :actors, id_method_name: :actor_ids },
    "id_method_name that is not there" => proc { has_many :actors, id_method_name: :nope_ids },
    "object_method_name" => proc { has_many :performers, object_method_name: :actors, id_method_name: :actor_ids },
    "object_method_name that is private" => proc {
      has_many :hidden, object_method_name: :secret_actors, id_method_name: :actor_ids, serializer: :actor
    },
    "a block" => proc { has_many(:actors) { |movie| movie.actors.reverse } },
    "a block of params" => proc { has_many(:actors) { |movie, params| params.empty? ? movie.actors.first(1) : [] } },
    "a block of one" => proc { belongs_to(:lead) { |movie| movie.actors.first } },
    "a block that answers nil" => proc { belongs_to(:lead) { nil } },
    "a block that answers nil, with a serializer" => proc { belongs_to(:lead, serializer: :actor) { nil } },
    "a block that answers nothing" => proc { has_many(:leads) { [] } },
    "a block with a serializer" => proc { has_many(:leads, serializer: :performer) { |movie| movie.actors } },
    "a block with id_method_name" => proc { has_many(:actors, serializer: :actor, id_method_name: :email) { |movie| movie.actors } },
    "a block with id_method_name and no serializer" => proc { has_many(:actors, id_method_name: :email) { |movie| movie.actors } },
    "a block made of a symbol" => proc { has_many(:performers, &:actors) },
    "polymorphic" => proc { has_many :actors, polymorphic: true },
    "polymorphic, one" => proc { belongs_to :studio, polymorphic: true },
    "polymorphic by a hash" => proc { has_many :actors, polymorphic: { Actor => :performer } },
    "polymorphic by a hash that does not name the class" => proc { has_many :actors, polymorphic: { Movie => :performer } },
    "polymorphic false" => proc { has_many :actors, polymorphic: false },
    "polymorphic with id_method_name" => proc { has_many :actors, polymorphic: true, id_method_name: :email },
    "polymorphic that is nil" => proc { belongs_to :director, polymorphic: true },
    "a condition that holds" => proc { has_many :actors, if: proc { |movie| movie.actors.any? } },
    "a condition that does not hold" => proc { has_many :actors, if: proc { |movie| movie.actors.empty? } },
    "a condition of params" => proc { has_many :actors, if: ->(_, params) { params[:admin] } },
    "lazy" => proc { has_many :actors, lazy_load_data: true },
    "lazy with links" => proc { has_many :actors, lazy_load_data: true, links: { related: ->(movie) { "#{movie.url}/actors" } } },
    "lazy, one" => proc { belongs_to :studio, lazy_load_data: true },
    "links of methods and blocks" => proc { has_many :actors, links: { self: :url, related: ->(movie) { "#{movie.url}/actors" } } },
    "links of a string" => proc { has_many :actors, links: { self: "url" } },
    "links with strings as keys" => proc { has_many :actors, links: { "self" => :url } },
    "links of params" => proc { has_many :actors, links: { self: ->(movie, params) { "#{movie.url}#{params}" } } },
    "links from a method" => proc { has_many :actors, links: :url },
    "links that are empty" => proc { has_many :actors, links: {} },
    "meta" => proc { has_many :actors, meta: { count: 2 } },
    "meta of a block" => proc { has_many :actors, meta: ->(movie) { { count: movie.actors.size } } },
    "meta of params" => proc { has_many :actors, meta: ->(_, params) { params } },
    "meta and links together" => proc { belongs_to :studio, meta: { a: 1 }, links: { self: :url }, lazy_load_data: true },
    "an option that is not known" => proc { has_many :actors, through: :castings, nonsense: 1 },
    "a transform" => proc {
      set_key_transform :camel
      has_many :actors
      belongs_to :film_studio, id_method_name: :studio_id, serializer: :studio
    },
    "declared twice" => proc {
      has_many :actors
      has_many :actors, serializer: :performer
    }
  }
  bodies.each do |name, body|
    add("relationships: #{name}") { |kit| related.call(kit, &body) }
    add("relationships: #{name}, of several records") { |kit| related.call(kit, movies(2), &body) }
  end

  includable = bodies.keys.grep(/has_many|belongs_to|has_one|key|record_type\z|serializer by|object_method/) |
               bodies.keys.grep(/block|polymorphic|lazy|condition|declared/)
  includable.each do |name|
    add("included: #{name}") do |kit|
      related.call(kit, &bodies[name])
      names = kit.get("MovieSerializer").relationships_to_serialize.keys
      kit.of("MovieSerializer", movies(2), include: names)
    end
  end

  add("relationships: a serializer chosen by a block") do |kit|
    space = kit.space
    related.call(kit, include: [:actors]) do
      has_many :actors, serializer: ->(actor, params) {
        space.const_get(actor.id == 1 || params[:x] ? :ActorSerializer : :PerformerSerializer)
      }
    end
  end
  add("relationships: a serializer chosen by a block of one argument") do |kit|
    space = kit.space
    related.call(kit, include: [:studio]) { belongs_to :studio, serializer: proc { |_| space.const_get(:StudioSerializer) } }
  end
  add("relationships: a serializer given as a class") do |kit|
    kit.define("CastSerializer") { set_type :cast }
    cast = kit.get("CastSerializer")
    related.call(kit, include: [:actors]) { has_many :actors, serializer: cast }
  end
  add("relationships: polymorphic records of several classes") do |kit|
    mixed = movie(1, actors: [Actor.new(id: 1, name: "A"), Comedian.new(id: 2, name: "C")])
    related.call(kit, mixed, include: [:actors]) { has_many :actors, polymorphic: true }
  end
  add("relationships: a block with records of several classes") do |kit|
    mixed = [Actor.new(id: 1, name: "A"), Comedian.new(id: 2, name: "C")]
    related.call(kit, include: [:everybody]) { has_many(:everybody) { mixed } }
  end
  add("relationships: ids that are nil or blank are left out as they are in the original") do |kit|
    related.call(kit, movie(1, actor_ids: [1, nil, "", 3])) { has_many :actors }
  end
  add("relationships: ids of text") { |kit|
    related.call(kit, movie(1, actor_ids: %w[a b], studio_id: "x-1")) {
      has_many :actors
      belongs_to :studio
    }
  }
  add("relationships: to-many that is nil") { |kit|
    related.call(kit, movie(1, actor_ids: nil, actors: nil)) {
      has_many :actors, polymorphic: true
    }
  }
end
