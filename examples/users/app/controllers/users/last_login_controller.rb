# frozen_string_literal: true

module Users
  # Corrected: the association selects the newest token, so there is one row per user.
  class LastLoginController < ApplicationController
    def index
      users = User.holding(titles)
                  .includes(:roles, :groups, :employee, :assignments, :group_assignments, :last_login_token)
      render json: users, each_serializer: UserLastLoginSerializer, include: %i[roles groups]
    end
  end
end
