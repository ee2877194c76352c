# frozen_string_literal: true

# Serializers with `cache_options` and cached relationships.
module SerializerCases
  # A minimal `fetch` cache: ActiveSupport is not loaded in each of these processes.
  class Shelf
    def initialize = @kept = {}
    def fetch(record, namespace: nil, **) = @kept[[namespace, record.class, record.id]] ||= yield
  end

  declared = {
    "no relationship" => proc {},
    "a relationship" => proc { has_many :actors },
    "a kept relationship" => proc { has_many :actors, cached: true },
    "both kinds" => proc { has_many(:actors, cached: true).then { belongs_to :studio } }
  }
  declared.each do |name, body|
    [nil, [:name], %i[name actors], [:studio], []].each do |fields|
      [true, false].each do |named|
        add("caching: #{name}, fields #{fields.inspect}#{", no attributes" unless named}") do |kit|
          kit.define("ActorSerializer") { attributes :name }
          kit.define("StudioSerializer") { attributes :name }
          kit.define("MovieSerializer") do
            cache_options store: Shelf.new
            attributes :name if named
            class_eval(&body)
          end
          asked = fields ? { fields: { movie: fields } } : {}
          kit.of("MovieSerializer", movies(2), **asked).serializable_hash
          kit.of("MovieSerializer", movies(2), **asked)
        end
      end
    end
  end
end
