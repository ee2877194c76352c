# frozen_string_literal: true

module Users
  # The same document from a faster serializer; jsonapi-serializer used to be called fast_jsonapi.
  class JsonapiSerializerController < ApplicationController
    def index
      users = User.holding(titles).includes(:roles, :groups, :employee, :last_login_token)
      render json: Fast::UserSerializer.new(users, include: %i[roles groups]).serializable_hash.to_json
    end
  end
end
