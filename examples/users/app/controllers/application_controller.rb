# frozen_string_literal: true

class ApplicationController < ActionController::API
  include ActionController::HttpAuthentication::Token::ControllerMethods

  API_TOKEN = ENV.fetch("API_TOKEN", "castellan-demo")

  before_action :authenticate

  private

  def authenticate
    known = authenticate_with_http_token { |token, _| ActiveSupport::SecurityUtils.secure_compare(token, API_TOKEN) }
    refuse unless known
  end

  def refuse
    response.headers["WWW-Authenticate"] = %(Bearer realm="users")
    error = { status: "401", title: "Unauthorized", detail: "Send the header Authorization: Bearer <token>." }
    render json: { errors: [error] }, status: :unauthorized
  end

  # `?role=Administrator,Manager`
  def titles
    params.fetch(:role, "").split(",")
  end
end
