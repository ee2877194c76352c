# frozen_string_literal: true

module Users
  # Eager loads all associations that the findings name. The token still takes one query per user.
  class AllAssociationsController < ApplicationController
    def index
      users = User.holding(titles).includes(:roles, :groups, :employee, :assignments, :group_assignments)
      render json: users, each_serializer: UserIndexSerializer, include: %i[roles groups]
    end
  end
end
