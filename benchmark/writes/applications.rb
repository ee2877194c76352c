# frozen_string_literal: true

require "jwt"
require "sequel"
require "castellan"

# The mail logs of the example with writes: by Castellan on both ORMs with the same checks, and by
# jsonapi-resources with the metal controller, as its guide recommends.
module Writes
  class CategoryResource < JSONAPI::Resource
    model_name "Category"
    attribute :name
  end

  class CompanyResource < JSONAPI::Resource
    model_name "Company"
    attributes :name, :icon
  end

  class MailLogResource < JSONAPI::Resource
    model_name "MailLog"
    attributes :number, :in_or_out, :document_date_on, :received_on, :external_number, :comment, :value_net, :value_vat
    has_one :category
    has_one :company
  end

  class MailLogsController < JSONAPI::ResourceControllerMetal
  end

  # Castellan's resources.
  module Fast
    class CategoryResource < Castellan::Resource
      model Category
      key_transform :dash
      attributes :name
    end

    class CompanyResource < Castellan::Resource
      model Company
      key_transform :dash
      attributes :name, :icon
    end

    class MailLogResource < Castellan::Resource
      model MailLog
      type "mail-logs"
      key_transform :dash
      attributes :number, :in_or_out, :document_date_on, :received_on, :external_number, :comment, :value_net, :value_vat
      belongs_to :category, :company
      sort :number, default: "-number"
      page size: 20, max_size: 100
      writable :number, :in_or_out, :document_date_on, :received_on, :external_number, :comment, :value_net, :value_vat, :category, :company
    end
  end

  # The models of examples/mail_logs/castellan and their resources.
  module OnSequel
    DB = Sequel.connect(ENV.fetch("DATABASE_URL"))

    class Category < Sequel::Model(DB[:categories]); end
    class Company < Sequel::Model(DB[:companies]); end

    class MailLog < Sequel::Model(DB[:mail_logs])
      plugin :timestamps, update_on_create: true
      plugin :validation_helpers
      many_to_one :category, class: "Writes::OnSequel::Category"
      many_to_one :company, class: "Writes::OnSequel::Company"

      def validate
        super
        validates_presence %i[category company]
      end
    end

    class CategoryResource < Castellan::Resource
      model Category
      type "categories"
      attributes :name
    end

    class CompanyResource < Castellan::Resource
      model Company
      type "companies"
      attributes :name, :icon
    end

    class MailLogResource < Castellan::Resource
      model MailLog
      type "mail-logs"
      key_transform :dash
      attributes :number, :in_or_out, :document_date_on, :received_on, :external_number, :comment, :value_net, :value_vat
      belongs_to :category, :company
      writable :number, :in_or_out, :document_date_on, :received_on, :external_number, :comment, :value_net, :value_vat, :category, :company
    end
  end

  resources = -> { [Fast::MailLogResource, Fast::CategoryResource, Fast::CompanyResource] }
  CASTELLAN = Castellan.app { resources.call.each { |one| resource one } }
  SEQUEL = Castellan.app { [OnSequel::MailLogResource, OnSequel::CategoryResource, OnSequel::CompanyResource].each { |one| resource one } }
  WITH_TOKEN = Castellan.app do
    authenticate(jwt: { key: "s" * 32, algorithms: %w[HS256] }) { |claims| claims["sub"] }
    resource Fast::MailLogResource
  end
  WITH_STRING = Castellan.app do
    authenticate { |env| env["HTTP_AUTHORIZATION"].start_with?("Bearer ") && "1" }
    resource Fast::MailLogResource
  end

  Rails.application.routes.append { namespace(:writes) { jsonapi_resources(:mail_logs) { nil } } }
  Rails.application.reload_routes!
end
