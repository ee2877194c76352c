# frozen_string_literal: true

# Attributes, ids, types, links, meta and conditions of one record.
module SerializerCases
  one = ->(kit, **options, &body) {
    kit.define("MovieSerializer", &body)
    kit.of("MovieSerializer", movie, **options)
  }

  # @!group Attributes

  bodies = {
    "one attribute" => proc { attribute :name },
    "several attributes" => proc { attributes :name, :release_year },
    "attributes named by strings" => proc { attributes "name", "release_year" },
    "no attributes" => proc {},
    "the id as an attribute" => proc { attributes :id, :name },
    "a block of the record" => proc { attribute(:shout) { |movie| movie.name.upcase } },
    "a block of record and params" => proc { attribute(:told) { |movie, params| [movie.name, params] } },
    "a block without arguments" => proc { attribute(:constant) { 42 } },
    "a block that takes an optional argument" => proc { attribute(:told) { |movie, params = {}| [movie.name, params] } },
    "a block that takes a list" => proc { attribute(:told) { |*given| given.size } },
    "a symbol as a block" => proc { attribute(:title, &:name) },
    "a lambda of one argument" => proc { attribute :title, ->(movie) { movie.name } },
    "a lambda of two arguments" => proc { attribute :title, ->(movie, params) { [movie.name, params] } },
    "a lambda and options" => proc { attribute :title, { if: ->(_movie) { true } }, ->(movie) { movie.name } },
    "a block for several attributes" => proc { attributes(:a, :b) { |movie| movie.name } },
    "an attribute declared twice" => proc {
      attributes :name, :release_year
      attribute(:name) { |movie| "#{movie.name}!" }
    },
    "a block that answers nil" => proc { attribute(:nothing) { nil } },
    "a block that answers a hash" => proc { attribute(:nested) { |movie| { name: movie.name, "list" => [1, nil, { a: 1.5 }] } } },
    "a block that calls a method of the class" => proc {
      def self.shout(text) = text.upcase
      attribute(:shout) { |movie| shout(movie.name) }
    },
    "an attribute that is not there" => proc { attribute :nope },
    "a method that is private" => proc { attribute :secret_actors },
    "a condition of the record that holds" => proc { attribute :name, if: proc { |movie| movie.release_year > 1900 } },
    "a condition of the record that does not hold" => proc { attribute :name, if: proc { |movie| movie.release_year > 2000 } },
    "a condition of params" => proc { attribute :name, if: proc { |_movie, params| params[:admin] } },
    "a condition with a block" => proc { attribute(:name, if: ->(movie) { movie.id == 1 }) { |movie| movie.name * 2 } },
    "a condition made of a symbol" => proc { attribute :name, if: :name.to_proc },
    "a condition for several attributes" => proc { attributes :name, :release_year, if: proc { |_, params| params.empty? } },
    "an option that is nil" => proc { attribute :name, if: nil }
  }
  bodies.each { |name, body| add("attributes: #{name}") { |kit| one.call(kit, &body) } }

  # @!endgroup
  # @!group Params

  add("params: reach a block") { |kit| one.call(kit, params: { word: "Hi" }) { attribute(:told) { |_, params| params[:word] } } }
  add("params: make a condition hold") { |kit|
    one.call(kit, params: { admin: true }) {
      attribute :name, if: proc { |_, params|
        params[:admin]
      }
    }
  }
  add("params: nil is an empty hash") { |kit| one.call(kit, params: nil) { attribute(:told) { |_, params| params } } }
  add("params: must be a hash") { |kit| one.call(kit, params: [1]) { attribute :name } }
  add("params: reach the id") { |kit|
    one.call(kit, params: { prefix: "m" }) {
      set_id { |movie, params| "#{params[:prefix]}-#{movie.id}" }
      attribute :name
    }
  }
  add("params: reach links, meta and relationships") do |kit|
    kit.define("ActorSerializer")
    one.call(kit, params: { host: "example.com" }) do
      link(:self) { |movie, params| "https://#{params[:host]}#{movie.url}" }
      meta { |movie, params| { host: params[:host], id: movie.id } }
      has_many(:actors, meta: ->(_, params) { params }, links: { self: ->(_, params) {
        params[:host]
      } }) { |movie, params| params ? movie.actors : [] }
    end
  end

  # @!endgroup
  # @!group Type and id

  {
    "a symbol" => proc { set_type :film },
    "a string" => proc { set_type "film" },
    "set after the transform" => proc {
      set_key_transform :dash
      set_type :silent_film
    },
    "set before the transform" => proc {
      set_type :silent_film
      set_key_transform :camel
    }
  }.each { |name, body| add("type: #{name}") { |kit| one.call(kit, &body) } }

  add("type: of a class whose name has several words") do |kit|
    kit.define("SilentFilmSerializer") { attribute :name }
    kit.of("SilentFilmSerializer", movie)
  end
  add("type: of a class whose name does not end in Serializer") do |kit|
    kit.define("Films") { set_type :films }
    kit.of("Films", movie)
  end

  {
    "another method" => proc { set_id :release_year },
    "a block" => proc { set_id { |movie| "movie-#{movie.id}" } },
    "a block made of a symbol" => proc { set_id(&:url) },
    "a method that answers nil" => proc { set_id :director_id },
    "a private method" => proc { set_id :secret_name }
  }.each { |name, body| add("id: #{name}") { |kit| one.call(kit, &body) } }

  add("id: a record without one") do |kit|
    kit.define("MovieSerializer") { attribute :name }
    kit.of("MovieSerializer", Thing.new(name: "No id"))
  end
  add("id: nil") { |kit|
    kit.define("MovieSerializer") { attribute :name }
    kit.of("MovieSerializer", movie(nil.to_i, id: nil))
  }
  add("id: a space") { |kit|
    kit.define("MovieSerializer") { attribute :name }
    kit.of("MovieSerializer", Thing.new(id: " ", name: "Space"))
  }

  # @!endgroup
  # @!group Links

  {
    "a method of that name" => proc { link :url },
    "another method" => proc { link :self, :url },
    "a string for the method" => proc { link :self, "url" },
    "a block" => proc { link(:custom) { |movie| "https://example.com#{movie.url}" } },
    "a block of params" => proc { link(:custom) { |movie, params| "#{movie.url}?#{params.size}" } },
    "several" => proc {
      link :self, :url
      link(:related) { |movie| { href: movie.url, meta: { n: 1 } } }
    },
    "a condition that holds" => proc { link :self, :url, if: ->(movie) { movie.id == 1 } },
    "a condition that does not hold" => proc { link :self, :url, if: ->(movie) { movie.id == 2 } },
    "with a transform" => proc {
      set_key_transform :camel_lower
      link :canonical_url, :url
    },
    "declared twice" => proc {
      link :self, :name
      link :self, :url
    }
  }.each { |name, body| add("links: #{name}") { |kit| one.call(kit, &body) } }

  # @!endgroup
  # @!group Meta

  {
    "a block" => proc { meta { |movie| { years: 2000 - movie.release_year } } },
    "a block of params" => proc { meta { |_movie, params| { params: params } } },
    "a block that answers nil" => proc { meta { nil } },
    "a lambda" => proc { meta ->(movie) { { id: movie.id } } }
  }.each { |name, body| add("meta: #{name}") { |kit| one.call(kit, &body) } }

  # @!endgroup
  # @!group Transforms

  [:camel, :camel_lower, :dash, :underscore, "dash", :unaltered].each do |way|
    add("transform: #{way.inspect} of everything") do |kit|
      %w[LeadActor FilmStudio].each { |name| kit.define("#{name}Serializer") { attribute :name } }
      kit.define("SilentFilmSerializer") do
        set_key_transform way
        attributes :release_year, :name
        attribute(:some_long_name) { |movie| movie.name }
        link :web_page, :url
        has_many :lead_actors, id_method_name: :actor_ids, object_method_name: :actors, serializer: :lead_actor
        belongs_to :film_studio, id_method_name: :studio_id, record_type: :film_studio
      end
      kit.of("SilentFilmSerializer", movie, include: [:lead_actors])
    end
  end
  add("transform: holds for what is declared after it") do |kit|
    one.call(kit) do
      attribute :release_year
      set_key_transform :dash
      attribute(:some_name) { |movie| movie.name }
    end
  end
  add("transform: of names with capitals") do |kit|
    one.call(kit) do
      set_key_transform :underscore
      attribute(:SomeName) { 1 }
      attribute(:"other-name") { 2 }
    end
  end
  add("transform: of names with digits") do |kit|
    one.call(kit) do
      set_key_transform :camel_lower
      attribute(:line_1) { 1 }
      attribute(:x_2_y) { 2 }
      attribute(:_hidden) { 3 }
    end
  end
end
