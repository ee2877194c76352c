# frozen_string_literal: true

class ApplicationController < ActionController::API
  include ActionController::HttpAuthentication::Token::ControllerMethods

  before_action :authenticate

  private

  attr_reader :current_user

  def authenticate
    @current_user = authenticate_with_http_token do |token, _|
      User.joins(:access_tokens).find_by(access_tokens: { digest: AccessToken.digest(token) })
    end
    refuse unless current_user
  end

  def refuse
    response.headers["WWW-Authenticate"] = %(Bearer realm="posts")
    render json: { error: "Send the header Authorization: Bearer <token>." }, status: :unauthorized
  end

  # Clients may store the response, but must revalidate it. Shared caches may not store it.
  def keep_private
    expires_in 0, public: false, must_revalidate: true
  end
end
