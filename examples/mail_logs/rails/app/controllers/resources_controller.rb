# frozen_string_literal: true

# Base class of the controllers: the metal controller of jsonapi-resources, with bearer tokens.
class ResourcesController < JSONAPI::ResourceControllerMetal
  include AbstractController::Callbacks

  before_action :authenticate

  private

  def authenticate
    BearerToken.claims(request.authorization)
  rescue BearerToken::Invalid => e
    response.headers["WWW-Authenticate"] = BearerToken::CHALLENGE
    response.headers["Content-Type"] = JSONAPI::MEDIA_TYPE
    self.status = 401
    self.response_body = BearerToken.error_document(e)
  end
end
