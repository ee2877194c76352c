# frozen_string_literal: true

require "sequel"
require "castellan"

DB = Sequel.connect(ENV.fetch("DATABASE_URL"))
Sequel::Model.plugin :timestamps, update_on_create: true
Sequel::Model.plugin :validation_helpers

class Category < Sequel::Model; end
class Company < Sequel::Model; end

class MailLog < Sequel::Model
  many_to_one :category
  many_to_one :company

  def validate
    super
    validates_presence %i[number received_on]
    validates_includes %w[in out], :in_or_out
  end
end

class ApiResource < Castellan::Resource
  key_transform :dash
  page size: 20, max_size: 100, count: "record-count"
end

class CategoryResource < ApiResource
  model Category
  attributes :name
end

class CompanyResource < ApiResource
  model Company
  attributes :name, :icon
  filter :name
  sort :name, default: "name"
  writable :name, :icon
end

class MailLogResource < ApiResource
  model MailLog
  type "mail-logs"
  attributes :number, :in_or_out, :document_date_on, :received_on, :external_number, :comment, :value_net, :value_vat
  belongs_to :category, :company
  filter :in_or_out, :received_on, :value_net
  filter :company, from: "company.name"
  sort :number, :received_on, default: "-number"
  sort :company, from: "company.name"
  writable :number, :in_or_out, :document_date_on, :received_on, :external_number, :comment, :value_net, :value_vat, :category, :company
  deletable
end

class CompanyStatisticResource < ApiResource
  model :company_statistics # a view, without a model and without a primary key
  type "company-statistics"
  id :company_id
  attributes :company_name, :mail_logs_count, :incoming_count, :outgoing_count, :value_net, :value_vat, :last_received_on
  sort :company_name, :mail_logs_count, default: "company_name"
end

run(Castellan.app do
  authenticate(jwt: { key: ENV.fetch("JWT_SECRET"), algorithms: %w[HS256] }) { |claims| claims["sub"] }
  operations
  [MailLogResource, CategoryResource, CompanyResource, CompanyStatisticResource].each { |one| resource one }
end)
