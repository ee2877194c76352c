# frozen_string_literal: true

# A row of a database view with the totals of a company. The view has no primary key, so it uses the
# company's.
class CompanyStatistic < ApplicationRecord
  self.primary_key = :company_id

  # In SQLite, the computed columns of a view have no type.
  attribute :value_net, :decimal
  attribute :value_vat, :decimal
  attribute :last_received_on, :date

  def readonly?
    true
  end
end
