# frozen_string_literal: true

# The serializers to compare, each as its documentation recommends. The documents are those of the examples:
# JSON:API for ActiveModel::Serializers and jsonapi-serializer (with the classes of the examples), and nested
# JSON for Panko, Alba and oj_serializers, which do not write JSON:API.
ENV["RACK_ENV"] = ENV["RAILS_ENV"] = "production" # without the checks that some of them make in development
require "active_support/all" # as in a Rails application
require "logger"
require "active_model_serializers"
require "jsonapi/serializer"
require "oj"
Oj.default_options = { mode: :rails, use_raw_json: true } # like oj_serializers, but without Oj.optimize_rails, which affects the others
require "oj_serializers"
require "alba"
require "panko_serializer"

ActiveModelSerializers.config.adapter = :json_api
ActiveModelSerializers.config.key_transform = :unaltered
ActiveModelSerializers.logger = Logger.new(nil)
Alba.backend = :oj_rails

module Benchmarks
  module Peers
    # Only the attributes of a user.
    PLAIN = %i[email first_name last_name].freeze
    # The attributes of a card, see {Cards}.
    CARD = %i[name email city phone note age score active seen_at joined_at].freeze

    class AccountSerializer < ActiveModel::Serializer
      type "users"
      attributes(*PLAIN)
    end

    class FastAccountSerializer
      include JSONAPI::Serializer

      set_type :users
      attributes(*PLAIN)
    end

    class FastCardSerializer
      include JSONAPI::Serializer

      set_type :cards
      attributes(*CARD)
    end

    module Panko
      class Card < ::Panko::Serializer
        attributes :id, *CARD
      end

      class Role < ::Panko::Serializer
        attributes :id, :title
      end

      class Group < ::Panko::Serializer
        attributes :id, :name
      end

      class Account < ::Panko::Serializer
        attributes :id, *PLAIN
      end

      class User < ::Panko::Serializer
        attributes :id, *PLAIN, :last_login_at, :employee_id
        has_many :roles, serializer: Role
        has_many :groups, serializer: Group

        def last_login_at = object.last_login_token&.last_used_at
        def employee_id = object.employee&.id
      end

      class Author < ::Panko::Serializer
        attributes :id, :name, :created_at, :updated_at
      end

      class Comment < ::Panko::Serializer
        attributes :id, :post_id, :user_id, :body, :created_at, :updated_at
      end

      class Post < ::Panko::Serializer
        attributes :id, :author_id, :title, :body, :published_at, :created_at, :updated_at
        has_one :author, serializer: Author
        has_many :comments, serializer: Comment
      end
    end

    module Alba
      class Card
        include ::Alba::Resource

        attributes :id, *CARD
      end

      class Role
        include ::Alba::Resource

        attributes :id, :title
      end

      class Group
        include ::Alba::Resource

        attributes :id, :name
      end

      class Account
        include ::Alba::Resource

        attributes :id, *PLAIN
      end

      class User
        include ::Alba::Resource

        attributes :id, *PLAIN
        attribute(:last_login_at) { |user| user.last_login_token&.last_used_at }
        attribute(:employee_id) { |user| user.employee&.id }
        many :roles, resource: Role
        many :groups, resource: Group
      end

      class Author
        include ::Alba::Resource

        attributes :id, :name, :created_at, :updated_at
      end

      class Comment
        include ::Alba::Resource

        attributes :id, :post_id, :user_id, :body, :created_at, :updated_at
      end

      class Post
        include ::Alba::Resource

        attributes :id, :author_id, :title, :body, :published_at, :created_at, :updated_at
        one :author, resource: Author
        many :comments, resource: Comment
      end
    end

    module OjSerializers
      class Card < Oj::Serializer
        attributes :id, *CARD
      end

      class Role < Oj::Serializer
        attributes :id, :title
      end

      class Group < Oj::Serializer
        attributes :id, :name
      end

      class Account < Oj::Serializer
        attributes :id, *PLAIN
      end

      class User < Oj::Serializer
        attributes :id, *PLAIN
        attribute(:last_login_at) { @object.last_login_token&.last_used_at }
        attribute(:employee_id) { @object.employee&.id }
        has_many :roles, serializer: Role
        has_many :groups, serializer: Group
      end

      class Author < Oj::Serializer
        attributes :id, :name, :created_at, :updated_at
      end

      class Comment < Oj::Serializer
        attributes :id, :post_id, :user_id, :body, :created_at, :updated_at
      end

      class Post < Oj::Serializer
        attributes :id, :author_id, :title, :body, :published_at, :created_at, :updated_at
        has_one :author, serializer: Author
        has_many :comments, serializer: Comment
      end
    end

    module_function

    # @return [String] JSON:API
    def active_model_serializers(records, serializer, include = [])
      kind = records.respond_to?(:each) ? { each_serializer: serializer } : { serializer: serializer }
      ActiveModelSerializers::SerializableResource.new(records, **kind, include: include).to_json
    end

    # @return [String] JSON:API
    def jsonapi_serializer(records, serializer, include = [])
      serializer.new(records, include: include).serializable_hash.to_json
    end

    # @return [Hash{String => Proc}] by name, a Proc from records to nested JSON
    def nested(kind)
      { "Panko" => ->(records) { ::Panko::ArraySerializer.new(records, each_serializer: Panko.const_get(kind)).to_json },
        "oj_serializers" => ->(records) { OjSerializers.const_get(kind).many_as_json(records).to_json },
        "Alba" => ->(records) { Alba.const_get(kind).new(records).serialize } }
    end

    # @return [Hash{String => Proc}] by name, a Proc from a record to nested JSON
    def nested_one(kind)
      { "Panko" => ->(record) { Panko.const_get(kind).new.serialize_to_json(record) },
        "oj_serializers" => ->(record) { OjSerializers.const_get(kind).one_as_json(record).to_json },
        "Alba" => ->(record) { Alba.const_get(kind).new(record).serialize } }
    end
  end
end
