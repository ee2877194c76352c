# frozen_string_literal: true

module Users
  # The original index: uses the serializer of `show`, and loads associations for one user at a time.
  class BaselineController < ApplicationController
    def index
      users = User.joins(:roles).where(roles: { title: titles }).distinct.order(:id)
      render json: users, each_serializer: UserSerializer, include: %i[roles groups]
    end
  end
end
