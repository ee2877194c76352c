# frozen_string_literal: true

require "sequel"

module Benchmarks
  # The models and resources of the users with Sequel, on the same tables.
  #
  #   sequel = SequelUsers.new("postgres://…")          # nil: the SQLite file of ActiveRecord's connection
  #   sequel.render(%w[Administrator Manager], include: %i[roles groups])
  class SequelUsers
    def initialize(url)
      @database = url ? Sequel.connect(url) : Sequel.sqlite(ActiveRecord::Base.connection_db_config.database)
      @database.timezone = :utc
      @roles, @groups, @employees, @tokens, @users = %i[roles groups employees authentication_tokens users].map { |table| model(table) }
      associate
      @resource = resource
    end

    # @return [String] the document of {UsersWorks}
    def render(titles, **options)
      holding = @database[:assignments].join(:roles, id: :role_id).where(title: titles).select(:user_id)
      @resource.render(@users.where(id: holding).order(:id), **options)
    end

    # @param limit [Integer, nil]
    # @return [String] the document of {PeopleWorks}
    def first(limit, **options)
      @resource.render(@users.order(:id).limit(limit), **options)
    end

    private

    def model(table)
      Class.new(Sequel::Model(@database[table])) { plugin :prepared_statements }
    end

    def associate
      @users.many_to_many :roles, class: @roles, join_table: :assignments, left_key: :user_id, right_key: :role_id
      @users.many_to_many :groups, class: @groups, join_table: :group_assignments, left_key: :user_id, right_key: :group_id
      @users.one_to_one :employee, class: @employees, key: :user_id
      @users.one_to_one(:last_login, class: @tokens, key: :user_id) { |tokens| tokens.where(on_behalf: false).reverse(:id) }
    end

    def resource
      users, roles, groups = @users, plain(@roles, "roles", :title), plain(@groups, "groups", :name)
      Class.new(Castellan::Resource) do
        model users
        type "users"
        attributes :email, :first_name, :last_name
        attribute :last_login_at, from: "last_login.last_used_at"
        attribute :employee_id, from: "employee.id"
        has_many :roles, resource: roles
        has_many :groups, resource: groups
      end
    end

    def plain(of, name, attribute)
      Class.new(Castellan::Resource) do
        model of
        type name
        attributes attribute
      end
    end
  end
end
