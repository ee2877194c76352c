# frozen_string_literal: true

# Edits an author, whose name is part of all their posts.
class ProfilesController < ApplicationController
  def update
    current_user.update!(name: params.require(:name))
    render json: current_user
  end
end
