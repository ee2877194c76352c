# frozen_string_literal: true

require_relative "../../shared/mail_logs_api"
