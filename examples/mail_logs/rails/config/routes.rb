# frozen_string_literal: true

Rails.application.routes.draw do
  # The empty blocks omit the routes of the relationships: clients read them with `include`.
  jsonapi_resources(:mail_logs) {}
  jsonapi_resources(:company_statistics) {}
end
