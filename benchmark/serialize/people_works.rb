# frozen_string_literal: true

require_relative "peers"
require_relative "castellan_ways"
require_relative "sequel_users"
require_relative "people"
require_relative "by_hand"
require_relative "hand_written"

module Benchmarks
  # The works on {People}: the document of all users, or of a page, compared with hand-written SELECTs.
  #
  #   PeopleWorks.new(example, postgres: "postgres://…", users: 1000).each { |work, title, ways| … }
  #   PeopleWorks.new(example, postgres: nil, users: 100_000, limit: 20)
  class PeopleWorks
    include CastellanWays

    INCLUDE = %i[roles groups].freeze
    EAGER = %i[roles groups employee last_login_token].freeze

    # @param postgres [String, nil] the URL of the database
    # @param limit [Integer, nil] the number of users on the page
    def initialize(example, postgres:, users:, limit: nil)
      example.load("app/serializers", "app/serializers/fast", "castellan_steps")
      @limit = limit
      @users = users
      People.fill(users)
      @sequel = SequelUsers.new(postgres)
      @written = HandWritten.new(limit: limit)
      @by_hand = ByHand.new
    end

    # @yieldparam work [Symbol]
    # @yieldparam title [String]
    # @yieldparam ways [Array<Way>]
    def each
      render = -> { UserResource.render(scope, include: INCLUDE) }
      SameDocuments.check(title, [Way.new("Castellan", :json_api, &render), Way.new(Goals::WRITTEN, :json_api) { @written.document }])
      yield @limit ? :page : :people, title, ways(render)
    end

    private

    def title
      "#{@limit ? "A page of #{@limit} of #{written(@users)}" : written(@users)} users, keys indexed alone, from the database"
    end

    def written(count)
      count.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",")
    end

    def scope
      User.order(:id).limit(@limit)
    end

    def eager
      scope.preload(*EAGER)
    end

    def ways(render)
      [*castellan(:json_api, &render), limit(&render), Way.new(Goals::WRITTEN, nil) { @written.call },
       Way.new(Goals::FLOOR, :json_api) { @limit ? @written.document : @by_hand.users },
       Way.new("Castellan, on Sequel", :json_api) { @sequel.first(@limit, include: INCLUDE) },
       *Peers.nested(:User).slice("Panko", "Alba").map { |name, write| Way.new("#{name}, nested", :nested) { write.call(eager) } },
       Way.new("jsonapi-serializer", :json_api) { Peers.jsonapi_serializer(eager, Fast::UserSerializer, INCLUDE) }]
    end
  end
end
