# frozen_string_literal: true

module Users
  # A serializer of its own for the index, with only what the front end uses.
  class IndexSerializerController < ApplicationController
    def index
      users = User.holding(titles).includes(:roles, :groups)
      render json: users, each_serializer: UserIndexSerializer, include: %i[roles groups]
    end
  end
end
