# frozen_string_literal: true

# Examines an application: boots it, measures one request, and says what is slow there and why.
#
#   application = Castellan::Doctor::Application.boot("config.ru", environment: "production")
#   request = Castellan::Doctor::Request.new("/users", headers: { "Authorization" => "Bearer …" })
#   examination = Castellan::Doctor::Examination.new(application, request).call
#   examination.measurement.queries   # => 1139
#   examination.findings.first.fix    # => "add .preload(:employee) …"
#
# Boots the application into the process that asks, so it belongs into one of its own. Not for requests that write.
require_relative "version"
require_relative "errors"
require_relative "config"
require_relative "doctor/unwell"
require_relative "doctor/output"
require_relative "doctor/application"
require_relative "doctor/request"
require_relative "doctor/shell_words"
require_relative "doctor/curl"
require_relative "doctor/databases"
require_relative "doctor/safety"
require_relative "doctor/memory"
require_relative "doctor/answer"
require_relative "doctor/refusal"
require_relative "doctor/examination"
require_relative "doctor/figures"
require_relative "doctor/finding_group"
require_relative "doctor/advice"
require_relative "doctor/report"
