# frozen_string_literal: true

require "bigdecimal"

# Declares the documents of both apps. The resources name their models by a string, so each app uses its own:
# ActiveRecord in rails/, Sequel in sequel/.
module MailLogsApi
  # Base class of the resources.
  class ApplicationResource < Castellan::Resource
    key_transform :dash

    # SQLite returns the computed columns of a view as floats; their digits are converted.
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
    writable :number, :in_or_out, :document_date_on, :received_on, :external_number, :comment, :value_net, :value_vat, :category, :company
    deletable
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
