# frozen_string_literal: true

require "bigdecimal"

# The documents of both apps, declared once: the resources name the models, and each app has models of its own, of ActiveRecord in
# rails/ and of Sequel in sequel/.
module MailLogsApi
  # What the resources share.
  class ApplicationResource < Castellan::Resource
    key_transform :dash

    # SQLite gives the computed columns of a view as floats, hence by way of the digits.
    def self.decimals(*names)
      names.each { |name| attribute(name, columns: name) { |row| row[name] && BigDecimal(row[name].to_s).to_s("F") } }
    end
  end

  class CategoryResource < ApplicationResource
    model Category
    attributes :name
  end

  class CompanyResource < ApplicationResource
    model Company
    attributes :name, :icon
  end

  class MailLogResource < ApplicationResource
    model MailLog
    type "mail-logs"
    attributes :number, :in_or_out, :document_date_on, :received_on, :external_number, :comment, :value_net, :value_vat
    belongs_to :category, :company
    sort :number, default: "-number"
    page size: 20, max_size: 100, count: "record-count"
  end

  class CompanyStatisticResource < ApplicationResource
    model CompanyStatistic
    type "company-statistics"
    attributes :company_name, :mail_logs_count, :incoming_count, :outgoing_count, :last_received_on
    decimals :value_net, :value_vat
    sort :company_id, default: "company_id"
    page size: 20, max_size: 100, count: "record-count"
  end
end
