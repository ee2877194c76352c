# frozen_string_literal: true

require "active_support"
require "active_support/core_ext/object" # jsonapi-serializer uses blank? and dasherize without requiring them
require "active_support/core_ext/string"
require "bigdecimal"
require "jsonapi/serializer"

# Base of the serializers: keys with dashes, decimals as strings ("12149.18"), like jsonapi-resources.
module Dashed
  def self.included(serializer)
    serializer.include JSONAPI::Serializer
    serializer.set_key_transform :dash
    serializer.extend ClassMethods
  end

  module ClassMethods
    # SQLite returns the computed columns of a view as floats; their digits are converted.
    def decimals(*names)
      names.each { |name| attribute(name) { |record| record[name] && BigDecimal(record[name].to_s).to_s("F") } }
    end
  end
end

class CategorySerializer
  include Dashed

  set_type :categories
  attribute :name
end

class CompanySerializer
  include Dashed

  set_type :companies
  attributes :name, :icon
end

class MailLogSerializer
  include Dashed

  set_type :"mail-logs"
  attributes :number, :in_or_out, :document_date_on, :received_on, :external_number, :comment
  decimals :value_net, :value_vat
  belongs_to :category, serializer: CategorySerializer
  belongs_to :company, serializer: CompanySerializer
end

class CompanyStatisticSerializer
  include Dashed

  set_type :"company-statistics"
  set_id :company_id
  attributes :company_name, :mail_logs_count, :incoming_count, :outgoing_count, :last_received_on
  decimals :value_net, :value_vat
end
