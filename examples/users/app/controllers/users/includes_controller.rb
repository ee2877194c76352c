# frozen_string_literal: true

module Users
  # Corrected: a subquery selects the users, so that the eager load reads all of their roles and groups.
  class IncludesController < ApplicationController
    def index
      users = User.holding(titles).includes(:roles, :groups)
      render json: users, each_serializer: UserSerializer, include: %i[roles groups]
    end
  end
end
