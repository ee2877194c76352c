# frozen_string_literal: true

# Edits an author; the author's name is part of all of the author's posts.
class ProfilesController < ApplicationController
  def update
    current_user.update!(name: params.require(:name))
    render json: current_user
  end
end
