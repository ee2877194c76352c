# frozen_string_literal: true

# One user, with the serializer of the original index. No step may change this response.
class UsersController < ApplicationController
  def show
    render json: User.find(params[:id]), serializer: UserSerializer, include: %i[roles groups]
  end
end
