# frozen_string_literal: true

module Users
  # As published, and wrong: the condition turns the eager load into a JOIN, so other roles of the users are
  # missing.
  class IncludesToldController < ApplicationController
    def index
      users = User.includes(:roles, :groups).where(roles: { title: titles }).order(:id)
      render json: users, each_serializer: UserSerializer, include: %i[roles groups]
    end
  end
end
