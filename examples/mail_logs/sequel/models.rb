# frozen_string_literal: true

require_relative "database"

class Category < Sequel::Model
end

class Company < Sequel::Model
end

class MailLog < Sequel::Model
  plugin :timestamps, update_on_create: true
  many_to_one :category
  many_to_one :company

  dataset_module do
    order :newest_first, Sequel.desc(:number)
  end
end

# A row of a database view with the totals of a company. The view has no primary key, so it uses the
# company's.
class CompanyStatistic < Sequel::Model
  set_primary_key :company_id

  dataset_module do
    order :by_company, :company_id
  end
end

Sequel::Model.freeze_descendants
DB.freeze
