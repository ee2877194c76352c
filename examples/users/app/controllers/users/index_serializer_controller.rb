# frozen_string_literal: true

module Users
  # A separate serializer for the index, with only the fields that the front end needs.
  class IndexSerializerController < ApplicationController
    def index
      users = User.holding(titles).includes(:roles, :groups)
      render json: users, each_serializer: UserIndexSerializer, include: %i[roles groups]
    end
  end
end
