# frozen_string_literal: true

class MailLogResource < ApplicationResource
  immutable
  attributes :number, :in_or_out, :document_date_on, :received_on, :external_number, :comment, :value_net, :value_vat
  has_one :category
  has_one :company

  def self.default_sort
    [{ field: "number", direction: :desc }]
  end
end
