# frozen_string_literal: true

require_relative "by_hand"
require_relative "peers"
require_relative "raw_statements"
require_relative "json_statements"
require_relative "castellan_ways"
require_relative "sequel_users"

module Benchmarks
  # The works on users: the whole list, nested, only attributes, one user, and only the encoders.
  #
  #   UsersWorks.new(example, postgres: "postgres://…", users: 1000).each { |work, ways| … }
  class UsersWorks
    include CastellanWays

    TITLES = %w[Administrator Manager].freeze
    INCLUDE = %i[roles groups].freeze
    EAGER = %i[roles groups employee last_login_token].freeze
    CHOSEN = "WHERE id IN (SELECT user_id FROM assignments JOIN roles role ON role.id = role_id " \
             "WHERE role.title IN ('Administrator', 'Manager'))"

    # @param postgres [String, nil] the URL of the database
    def initialize(example, postgres:, users:)
      example.load("app/serializers", "app/serializers/fast", "castellan_steps")
      require_relative "account_resource"
      @postgres = postgres
      @users = users
      @one = scope.first.id
      @sequel = SequelUsers.new(postgres)
    end

    # @yieldparam work [Symbol]
    # @yieldparam title [String]
    # @yieldparam ways [Array<Way>]
    def each
      yield :users, "#{count} users with roles, groups, employee id and last login, from the database", whole
      yield :users_loaded, "The same, database excluded: rows fetched, records loaded (attributes never read before)", loaded
      yield :attributes, "#{count} users, three attributes, from the database", attributes
      yield :one, "One user by id with roles, groups, employee id and last login", one
      yield :one_attributes, "One user by id, three attributes", one_attributes
    end

    private

    def count
      @users.to_s.gsub(/(?<=\d)(?=\d{3}\z)/, ",")
    end

    def scope
      User.holding(TITLES)
    end

    def eager
      scope.preload(*EAGER)
    end

    def whole
      render = -> { UserResource.render(scope, include: INCLUDE) }
      by_hand = ByHand.new(where: CHOSEN)
      [*castellan(:json_api, &render), limit(&render), *json_statements, Way.new(Goals::FLOOR, :json_api) { by_hand.users },
       Way.new("Castellan, on Sequel", :json_api) { @sequel.render(TITLES, include: INCLUDE) },
       Way.new("Castellan, nested", :nested) { UserResource.render(scope, include: INCLUDE, format: :nested) },
       *Peers.nested(:User).map { |name, write| Way.new("#{name}, nested", :nested) { write.call(eager) } },
       Way.new("jsonapi-serializer", :json_api) { Peers.jsonapi_serializer(eager, Fast::UserSerializer, INCLUDE) },
       Way.new("ActiveModel::Serializers", :json_api) { Peers.active_model_serializers(eager, UserLastLoginSerializer, INCLUDE) }]
    end

    def json_statements
      return [] unless @postgres

      statements = JsonStatements.new(@users)
      [Way.new("one statement, grouped CTEs and string_agg", :json_api) { statements.grouped },
       Way.new("one statement, correlated json_agg", :json_api) { statements.correlated }]
    end

    def loaded
      [*encoders(-> { UserResource.document(scope, include: INCLUDE) }, :json_api),
       *encoders(-> { UserResource.document(scope, include: INCLUDE, format: :nested) }, :nested, suffix: ", nested"),
       *Peers.nested(:User).map { |name, write| Way.new("#{name}, nested", :nested, prepare: -> { eager.to_a }, &write) },
       Way.new("jsonapi-serializer", :json_api, prepare: -> { eager.to_a }) do |users|
         Peers.jsonapi_serializer(users, Fast::UserSerializer, INCLUDE)
       end,
       Way.new("ActiveModel::Serializers", :json_api, prepare: -> { eager.to_a }) do |users|
         Peers.active_model_serializers(users, UserLastLoginSerializer, INCLUDE)
       end]
    end

    def attributes
      render = -> { AccountResource.render(scope) }
      [*castellan(:json_api, &render), limit(&render),
       Way.new("Castellan, nested", :nested) { AccountResource.render(scope, format: :nested) },
       *Peers.nested(:Account).map { |name, write| Way.new("#{name}, nested", :nested) { write.call(scope) } },
       Way.new("jsonapi-serializer", :json_api) { Peers.jsonapi_serializer(scope, Peers::FastAccountSerializer) },
       Way.new("ActiveModel::Serializers", :json_api) { Peers.active_model_serializers(scope, Peers::AccountSerializer) }]
    end

    def one
      render = -> { UserResource.render(id: @one, include: INCLUDE) }
      find = -> { User.preload(*EAGER).find(@one) }
      [*castellan(:json_api, &render), limit(&render),
       Way.new("Castellan, nested", :nested) { UserResource.render(id: @one, include: INCLUDE, format: :nested) },
       *Peers.nested_one(:User).map { |name, write| Way.new("#{name}, nested", :nested) { write.call(find.call) } },
       Way.new("jsonapi-serializer", :json_api) { Peers.jsonapi_serializer(find.call, Fast::UserSerializer, INCLUDE) },
       Way.new("ActiveModel::Serializers", :json_api) { Peers.active_model_serializers(find.call, UserLastLoginSerializer, INCLUDE) }]
    end

    def one_attributes
      render = -> { AccountResource.render(id: @one) }
      by_hand = ByHand.new
      [*castellan(:json_api, &render), limit(&render), Way.new(Goals::FLOOR, :json_api) { by_hand.one(@one) },
       Way.new("Castellan, nested", :nested) { AccountResource.render(id: @one, format: :nested) },
       *Peers.nested_one(:Account).map { |name, write| Way.new("#{name}, nested", :nested) { write.call(User.find(@one)) } },
       Way.new("jsonapi-serializer", :json_api) { Peers.jsonapi_serializer(User.find(@one), Peers::FastAccountSerializer) },
       Way.new("ActiveModel::Serializers", :json_api) { Peers.active_model_serializers(User.find(@one), Peers::AccountSerializer) }]
    end
  end
end
