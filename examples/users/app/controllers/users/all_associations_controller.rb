# frozen_string_literal: true

module Users
  # Every association that the findings named is eager loaded; what remains is the token, one query a user.
  class AllAssociationsController < ApplicationController
    def index
      users = User.holding(titles).includes(:roles, :groups, :employee, :assignments, :group_assignments)
      render json: users, each_serializer: UserIndexSerializer, include: %i[roles groups]
    end
  end
end
