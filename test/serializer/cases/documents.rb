# frozen_string_literal: true

# Collections, includes, fields, options, inheritance.
module SerializerCases
  world = ->(kit) {
    kit.define("ActorSerializer") { attributes :name, :email }
    kit.define("StudioSerializer") do
      attributes :name
      has_many :movies
    end
    kit.define("MovieSerializer") do
      attributes :name, :release_year
      has_many :actors
      belongs_to :studio
      belongs_to :director, lazy_load_data: true
    end
    kit.define("DirectorSerializer") do
      attributes :name
      has_many :movies
    end
  }
  shown = ->(kit, resource = movies, **options) {
    world.call(kit)
    kit.of("MovieSerializer", resource, **options)
  }

  # @!group Input

  {
    "one" => -> { movie }, "several" => -> { movies }, "none" => -> { [] }, "nil" => -> {},
    "an enumerator" => -> { movies.each }, "a set" => -> { movies.to_set }, "a lazy enumerator" => -> { movies.lazy }
  }.each { |name, resource| add("resource: #{name}") { |kit| shown.call(kit, resource.call) } }

  add("resource: nil with meta and links") { |kit| shown.call(kit, nil, meta: { a: 1 }, links: { self: "/" }) }
  add("resource: nil with include") { |kit| shown.call(kit, nil, include: [:actors]) }
  add("resource: a struct") { |kit|
    kit.define("PointSerializer") { attributes :x, :y }
    kit.of("PointSerializer", Point.new(1, 2, 3))
  }
  add("resource: several structs") { |kit|
    kit.define("PointSerializer") { attributes :x, :y }
    kit.of("PointSerializer", [Point.new(1, 2, 3), Point.new(2, 4, 5)])
  }
  add("resource: several that must be one") { |kit|
    kit.define("ListSerializer") {
      set_id { "list" }
      attribute :size
    }
    kit.of("ListSerializer", movies, is_collection: false)
  }
  add("resource: one that must be several") { |kit|
    kit.define("PointSerializer") { attribute(:value) { |value| value } and set_id { |value| value } }
    kit.of("PointSerializer", Point.new(1, 2, 3), is_collection: true)
  }
  add("resource: is_collection nil") { |kit| shown.call(kit, movies, is_collection: nil) }
  add("resource: is_collection true of nil") { |kit| shown.call(kit, nil, is_collection: true) }

  # @!endgroup
  # @!group Options

  add("options: none") { |kit|
    world.call(kit)
    kit.get("MovieSerializer").new(movie)
  }
  add("options: meta of one") { |kit| shown.call(kit, movie, meta: { total: 1, "x" => [nil] }) }
  add("options: meta of several") { |kit| shown.call(kit, movies, meta: { total: 3 }) }
  add("options: links of one") { |kit| shown.call(kit, movie, links: { self: "/movies/1?a=1&b=<2>" }) }
  add("options: links of several") { |kit| shown.call(kit, movies, links: { self: "/movies", next: nil }) }
  add("options: meta, links and include of one") { |kit| shown.call(kit, movie, links: { a: 1 }, meta: { b: 2 }, include: [:actors]) }
  add("options: meta, links and include of several") { |kit| shown.call(kit, movies, links: { a: 1 }, meta: { b: 2 }, include: [:actors]) }
  add("options: empty meta and links") { |kit| shown.call(kit, movie, meta: {}, links: {}) }
  add("options: what is not known") { |kit| shown.call(kit, movie, nonsense: 1) }

  # @!endgroup
  # @!group Fields

  {
    "one attribute" => { movie: [:name] }, "as strings" => { "movie" => ["name"] }, "in another order" => { movie: %i[release_year name] },
    "a relationship" => { movie: %i[name actors] }, "a relationship alone" => { movie: [:studio] }, "none" => { movie: [] },
    "of another type" => { actor: [:name] }, "what is not there" => { movie: %i[name nope] },
    "only what is not there" => { movie: [:nope] },
    "of several types" => { movie: %i[name actors], actor: [:email] }, "of no type" => {}, "nil" => nil
  }.each do |name, fields|
    add("fields: #{name}") { |kit| shown.call(kit, movies, fields: fields) }
    add("fields: #{name}, with include") { |kit| shown.call(kit, movies, fields: fields, include: %i[actors studio]) }
  end
  add("fields: are keys after a transform") do |kit|
    kit.define("MovieSerializer") do
      set_key_transform :dash
      attributes :name, :release_year
    end
    kit.of("MovieSerializer", movie, fields: { movie: [:"release-year"] })
  end
  add("fields: relationships go by their name and not their key") do |kit|
    kit.define("ActorSerializer")
    kit.define("MovieSerializer") {
      attributes :name
      has_many :actors, key: :cast
    }
    kit.of("MovieSerializer", movie, fields: { movie: %i[cast name] })
  end

  # @!endgroup
  # @!group Include

  deep = -> {
    studio = Studio.new(id: 9, name: "UFA", movie_ids: [5, 6], movies: [movie(5, studio_id: 9), movie(6, studio_id: 9)])
    [movie(1, studio: studio), movie(2, studio: studio, studio_id: 9), movie(3)]
  }
  {
    "one relationship" => [:actors],
    "several" => %i[studio actors], "as strings" => %w[actors studio], "a blank one" => ["", "actors", nil],
    "only blank ones" => [""], "nothing" => [], "nil" => nil, "nested" => [:"studio.movies"], "nested twice" => [:"studio.movies.actors"],
    "a step and what it leads to" => %i[studio studio.movies], "the same twice" => %i[actors actors], "what is nil" => [:director],
    "what is not there" => [:nope], "a nested one that is not there" => [:"studio.nope"], "an attribute" => [:name],
    "several nested" => %i[studio.movies.actors studio.movies.studio actors]
  }.each { |name, include| add("include: #{name}") { |kit| shown.call(kit, deep.call, include: include) } }

  add("include: of one record") { |kit| shown.call(kit, deep.call.first, include: [:"studio.movies.actors"]) }
  add("include: of a serializer without relationships, of nothing") do |kit|
    kit.define("MovieSerializer") { attributes :name }
    kit.of("MovieSerializer", movie, include: [])
  end
  add("include: records with the same id and another type") do |kit|
    world.call(kit)
    kit.define("PairSerializer") do
      has_many(:people, serializer: :actor) { |movie| movie.actors }
      has_many(:leaders, serializer: :director) { |movie|
        movie.actors.map { |actor|
          Director.new(id: actor.id, name: "D", movie_ids: [])
        }
      }
    end
    kit.of("PairSerializer", movie, include: %i[people leaders])
  end
  add("include: linkage whose type is not the included records'") do |kit|
    world.call(kit)
    kit.get("MovieSerializer").has_many :actors, record_type: :person
    kit.of("MovieSerializer", movies(2), include: [:actors], fields: { person: [:name] })
  end

  # @!endgroup
  # @!group Inheritance

  parent = proc do
    set_key_transform :dash
    attributes :name, :release_year
    link :self, :url
    has_many :actors
    meta { |movie| { id: movie.id } }
  end
  {
    "nothing of its own" => proc {}, "a further attribute" => proc { attribute(:more_of_it) { 1 } },
    "an attribute again" => proc { attribute(:name) { |movie| movie.name * 2 } }, "another type" => proc { set_type :film },
    "another transform" => proc {
      set_key_transform :camel
      attribute(:more_of_it) { 1 }
    },
    "another link" => proc { link(:self) { "mine" } }, "another id" => proc { set_id(:url) },
    "another relationship" => proc { belongs_to :studio, record_type: :studio, serializer: :actor }, "another meta" => proc { meta { nil } }
  }.each do |name, body|
    add("inheritance: #{name}") do |kit|
      kit.define("ActorSerializer") { attributes :name }
      kit.define("MovieSerializer", &parent)
      kit.define("SilentFilmSerializer", "MovieSerializer", &body)
      kit.of("SilentFilmSerializer", movies(2), include: [:actors])
    end
    add("inheritance: #{name} leaves the parent as it is") do |kit|
      kit.define("ActorSerializer") { attributes :name }
      kit.define("MovieSerializer", &parent)
      kit.define("SilentFilmSerializer", "MovieSerializer", &body)
      kit.of("MovieSerializer", movie)
    end
  end
  add("inheritance: an id by a block is inherited") do |kit|
    kit.define("MovieSerializer") { set_id { |movie| "m#{movie.id}" } }
    kit.define("FilmSerializer", "MovieSerializer") { attribute :name }
    kit.of("FilmSerializer", movie)
  end

  # @!endgroup
  # @!group Class methods

  add("introspection: names of attributes, relationships and type") do |kit|
    serializer = world.call(kit) && kit.get("MovieSerializer")
    [serializer.attributes_to_serialize.keys, serializer.relationships_to_serialize.keys, serializer.record_type,
     serializer.relationships_to_serialize.values.map { |one|
       [one.name, one.key, one.relationship_type, one.id_method_name, one.object_method_name]
     },
     serializer.attributes_to_serialize.values.map { |one| [one.key, one.method] }]
  end
  add("introspection: to_hash") { |kit| shown.call(kit, movie).to_hash }
  add("introspection: is_collection?") { |kit|
    world.call(kit)
    [movies, movie, {}, nil, Point.new(1)].map { |resource| kit.get("MovieSerializer").is_collection?(resource) }
  }
  add("embedded in another hash") { |kit| { user: shown.call(kit, movie) }.to_json }
  add("helpers: a module that extends") do |kit|
    helper = Module.new { def shout(text) = "#{text}!" }
    kit.define("MovieSerializer") do
      extend helper

      attribute(:shout) { |movie| shout(movie.name) }
    end
    kit.of("MovieSerializer", movie)
  end
end
