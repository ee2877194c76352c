# frozen_string_literal: true

# The steps with Castellan: renders documents of resources in a Rails controller.
class CastellanController < ActionController::API
  before_action :authenticate

  rescue_from Castellan::BadRequest do |error|
    render json: { errors: [error.to_h] }, status: error.status, content_type: JSONAPI::MEDIA_TYPE
  end

  def mail_logs
    answer_with MailLogsApi::MailLogResource
  end

  def company_statistics
    answer_with MailLogsApi::CompanyStatisticResource
  end

  private

  def answer_with(resource)
    document = resource.document(query: request.query_parameters)
    render json: document, status: document.status, content_type: JSONAPI::MEDIA_TYPE
  end

  def authenticate
    BearerToken.claims(request.authorization)
  rescue BearerToken::Invalid => e
    response.headers["WWW-Authenticate"] = BearerToken::CHALLENGE
    render json: BearerToken.error_document(e), status: :unauthorized, content_type: JSONAPI::MEDIA_TYPE
  end
end
