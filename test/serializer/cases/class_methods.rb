# frozen_string_literal: true

require_relative "../library"

# Undocumented class methods of jsonapi-serializer, and those inherited from fast_jsonapi.
module SerializerCases
  full = ->(kit) {
    kit.define("ActorSerializer") { attributes :name }
    kit.define("StudioSerializer") { attributes :name }
    kit.define("MovieSerializer") do
      attributes :name, :release_year
      attribute(:asked) { |_, params| params[:word] }
      has_many :actors, cached: true
      belongs_to :studio, lazy_load_data: true
      link :self, :url
      link(:asked, if: ->(_, params) { params[:word] }) { |movie, params| "#{movie.url}?#{params[:word]}" }
      meta { |movie, params| { id: movie.id, word: params[:word] } }
    end
  }
  {
    "id_from_record" => ->(one) { one.id_from_record(movie, {}) },
    "run_key_transform" => ->(one) { [one.run_key_transform("release_year"), one.run_key_transform(:a)] },
    "reflected_record_type" => ->(one) { one.reflected_record_type },
    "is_collection?" => ->(one) { [movie, [movie], { a: 1 }].map { |value| one.is_collection?(value) } + [one.is_collection?(1, true)] },
    "serializer_for" => ->(one) { [one.serializer_for(:actors), one.serializer_for("Movies::Studio")].map { |found| found.record_type } },
    "serializer_for nobody" => ->(one) { one.serializer_for(:nobody) },
    "validate_includes!" => ->(one) { one.validate_includes!(%i[actors studio]) && :valid },
    "validate_includes! of what is not there" => ->(one) { one.validate_includes!(%i[actors nope]) },
    "declared names" => ->(one) {
      [one.attributes_to_serialize.keys, one.relationships_to_serialize.keys, one.data_links.keys, one.record_type, one.record_id]
    },
    "record_cache_options of all fields" => ->(one) { one.cache_store_instance.inspect }
  }.each do |name, body|
    add("class methods: #{name}") do |kit|
      full.call(kit)
      body.call(kit.get("MovieSerializer"))
    end
  end

  {
    "use_hyphen" => proc {
      use_hyphen
      attribute(:release_year)
      has_many :lead_actors, id_method_name: :actor_ids, serializer: :actor
    },
    "through: says nothing" => proc { has_many :actors, through: :castings },
    "cached relationships" => proc { has_many :actors, cached: true }
  }.each do |name, body|
    add("class methods: #{name}") do |kit|
      kit.define("ActorSerializer") { attributes :name }
      kit.define("SilentMovieSerializer", &body)
      kit.of("SilentMovieSerializer", movie)
    end
  end

  add("class methods: the two halves of serializable_hash may be asked for") do |kit|
    full.call(kit)
    [kit.of("MovieSerializer", movie).hash_for_one_record, kit.of("MovieSerializer", movies(2)).hash_for_collection]
  end
  add("class methods: what is written over a half is written") do |kit|
    full.call(kit)
    kit.get("MovieSerializer").class_eval do
      def hash_for_one_record = super.merge(jsonapi: { version: "1.0" })
      def hash_for_collection = super.merge(jsonapi: { version: "1.1" })
    end
    kit.of("MovieSerializer", movies(2))
  end

  books = { "one record" => -> { Book.find(1) }, "records" => -> { Book.order(:id).to_a }, "a relation" => -> { Book.order(:id) } }
  {
    "to_hash" => proc { def to_hash = super.merge(jsonapi: { version: "1.0" }) },
    "as_json" => proc { def as_json(*) = super.merge("jsonapi" => { "version" => "1.0" }) },
    "serializable_hash" => proc { def serializable_hash = super.merge(jsonapi: { version: "1.0" }) }
  }.each do |name, body|
    books.each do |what, resource|
      add("class methods: the JSON of #{what} where #{name} is written over") do |kit|
        kit.define("BookSerializer") { attributes :title }
        kit.get("BookSerializer").class_eval(&body)
        JSON.parse(kit.of("BookSerializer", resource.call).to_json)
      end
    end
  end
end
