# frozen_string_literal: true

module Users
  # As published, and wrong: the association has a scope without an order, so eager loading reads all tokens
  # and
  # uses the oldest.
  class LastLoginToldController < ApplicationController
    def index
      users = User.holding(titles)
                  .includes(:roles, :groups, :employee, :assignments, :group_assignments, :last_login_token_told)
      render json: users, each_serializer: UserLastLoginToldSerializer, include: %i[roles groups]
    end
  end
end
