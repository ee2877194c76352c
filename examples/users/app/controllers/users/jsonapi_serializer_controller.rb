# frozen_string_literal: true

module Users
  # The same document with a faster serializer; jsonapi-serializer was called fast_jsonapi before.
  class JsonapiSerializerController < ApplicationController
    def index
      users = User.holding(titles).includes(:roles, :groups, :employee, :last_login_token)
      render json: Fast::UserSerializer.new(users, include: %i[roles groups]).serializable_hash.to_json
    end
  end
end
