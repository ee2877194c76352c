# frozen_string_literal: true

# An author's edit, which every post of that author shows.
class ProfilesController < ApplicationController
  def update
    current_user.update!(name: params.require(:name))
    render json: current_user
  end
end
