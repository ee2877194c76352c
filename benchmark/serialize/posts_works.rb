# frozen_string_literal: true

require_relative "peers"
require_relative "castellan_ways"

module Benchmarks
  # The works on posts: 100 posts with author and comments, nested.
  #
  #   PostsWorks.new(example, posts: 100).each { |work, title, ways| … }
  class PostsWorks
    include CastellanWays

    INCLUDE = %i[author comments].freeze

    def initialize(example, posts:)
      example.load("castellan_steps")
      @posts = posts
    end

    def each
      yield :posts, "#{@posts} posts with author and comments, nested, from the database", whole
      yield :posts_loaded, "The same, database excluded: rows fetched, records loaded (attributes never read before)", loaded
    end

    private

    def scope
      Post.listed.limit(@posts)
    end

    def eager
      scope.preload(*INCLUDE)
    end

    def whole
      render = -> { PostResource.render(scope, include: INCLUDE) }
      [*castellan(:nested, &render), limit(&render),
       *Peers.nested(:Post).map { |name, write| Way.new(name, :nested) { write.call(eager) } },
       Way.new("to_json(include:)", :nested) { eager.to_json(include: INCLUDE) }]
    end

    def loaded
      [*encoders(-> { PostResource.document(scope, include: INCLUDE) }, :nested),
       *Peers.nested(:Post).map { |name, write| Way.new(name, :nested, prepare: -> { eager.to_a }, &write) },
       Way.new("to_json(include:)", :nested, prepare: -> { eager.to_a }) { |posts| posts.to_json(include: INCLUDE) }]
    end
  end
end
