# frozen_string_literal: true

# One user, with the serializer that the index started from. No step may change what it sends.
class UsersController < ApplicationController
  def show
    render json: User.find(params[:id]), serializer: UserSerializer, include: %i[roles groups]
  end
end
