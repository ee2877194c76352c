# frozen_string_literal: true

require "castellan"
require_relative "../../shared/bearer_token"
require_relative "../models"
require_relative "../../shared/mail_logs_api"

# The JSON:API server of the last step: Rack, the Sequel models and the resources.
run(Castellan.app do
  authenticate(challenge: BearerToken::CHALLENGE) do |env|
    BearerToken.claims(env["HTTP_AUTHORIZATION"])
  rescue BearerToken::Invalid
    nil
  end

  resource MailLogsApi::MailLogResource
  resource MailLogsApi::CompanyStatisticResource
end)
