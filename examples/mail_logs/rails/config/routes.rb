# frozen_string_literal: true

Rails.application.routes.draw do
  # The empty blocks leave out the routes of the relationships: both are read by `include`.
  jsonapi_resources(:mail_logs) {}
  jsonapi_resources(:company_statistics) {}
end
