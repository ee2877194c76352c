# frozen_string_literal: true

# The steps with Castellan, drawn only with WITH_CASTELLAN=1. Their code is in castellan_steps/.
Rails.application.routes.draw do
  get "castellan/mail-logs", to: "castellan#mail_logs"
  get "castellan/company-statistics", to: "castellan#company_statistics"
end
