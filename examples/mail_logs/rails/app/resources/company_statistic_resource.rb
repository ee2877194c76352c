# frozen_string_literal: true

class CompanyStatisticResource < ApplicationResource
  immutable
  key_type :integer
  attributes :company_name, :mail_logs_count, :incoming_count, :outgoing_count, :value_net, :value_vat, :last_received_on
end
