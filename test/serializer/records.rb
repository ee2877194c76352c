# frozen_string_literal: true

# The plain objects and structs that the cases serialize.
module SerializerCases
  # Has a reader for each given name.
  class Thing
    def initialize(**values)
      @values = values
      values.each { |name, value| define_singleton_method(name) { value } }
    end

    def private_name = "public"

    private

    def secret_name = "secret"

    def secret_actors = [Actor.new(id: 7, name: "Hidden")]
  end

  # Separate classes, because polymorphic serializers depend on the class.
  class Movie < Thing; end
  class Actor < Thing; end
  class Director < Thing; end
  class Studio < Thing; end
  class Comedian < Actor; end

  Point = Struct.new(:id, :x, :y)
  Crew = Struct.new(:id, :name, keyword_init: true)

  class << self
    def movie(id = 1, **more)
      Movie.new(id: id, name: "Movie #{id}", release_year: 1920 + id, url: "/movies/#{id}", actor_ids: [1, 2], actors: actors,
                studio_id: 9, studio: Studio.new(id: 9, name: "UFA", movies: [], movie_ids: []), director_id: nil, director: nil, **more)
    end

    def actors = [Actor.new(id: 1, name: "Brigitte", email: "b@example.com"), Actor.new(id: 2, name: "Alfred", email: "a@example.com")]

    def movies(count = 3) = (1..count).map { |id| movie(id) }
  end
end
