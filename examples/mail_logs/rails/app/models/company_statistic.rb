# frozen_string_literal: true

# A row of a database view: the totals of one company. The view has no primary key; the company's is used.
class CompanyStatistic < ApplicationRecord
  self.primary_key = :company_id

  # SQLite gives the computed columns of a view no type.
  attribute :value_net, :decimal
  attribute :value_vat, :decimal
  attribute :last_received_on, :date

  def readonly?
    true
  end
end
