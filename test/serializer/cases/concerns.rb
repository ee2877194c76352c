# frozen_string_literal: true

require "active_support/concern"

# Serializers built from concerns.
module SerializerCases
  add("helpers: a concern that includes the serializer") do |kit|
    base = Module.new do
      extend ActiveSupport::Concern
      include kit.tested

      included { attribute :release_year }
    end
    kit.space.module_eval("class FilmSerializer; end", __FILE__, __LINE__)
    kit.get("FilmSerializer").include(base)
    kit.get("FilmSerializer").attribute(:name)
    kit.of("FilmSerializer", movie)
  end
  add("helpers: a concern") do |kit|
    helper = Module.new do
      extend ActiveSupport::Concern

      class_methods { def shout(text) = "#{text}?" }
      included { attribute :release_year }
    end
    kit.define("MovieSerializer") do
      include helper

      attribute(:shout) { |movie| shout(movie.name) }
    end
    kit.of("MovieSerializer", movie)
  end
end
