# frozen_string_literal: true

module Users
  # As told, and wrong: the condition turns the eager load into a JOIN, so that of a user's roles only those that were
  # filtered for are sent.
  class IncludesToldController < ApplicationController
    def index
      users = User.includes(:roles, :groups).where(roles: { title: titles }).order(:id)
      render json: users, each_serializer: UserSerializer, include: %i[roles groups]
    end
  end
end
