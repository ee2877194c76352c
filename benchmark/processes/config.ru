# frozen_string_literal: true

# The mail logs of the example, cached in Redis if REDIS_URL is set. A header has the number of the process.
require "sequel"
require "castellan"

DB = Sequel.connect(ENV.fetch("DATABASE_URL"))

class Category < Sequel::Model; end
class Company < Sequel::Model; end

class MailLog < Sequel::Model
  many_to_one :category
  many_to_one :company
end

if ENV["REDIS_URL"]
  Castellan.keep(store: Castellan::Store::RedisStore.new(url: ENV["REDIS_URL"]), versions: Castellan::Versions::ExactVersions.new(DB))
end

class CategoryResource < Castellan::Resource
  model Category
  attributes :name
end

class CompanyResource < Castellan::Resource
  model Company
  attributes :name, :icon
end

class MailLogResource < Castellan::Resource
  model MailLog
  type "mail-logs"
  attributes :number, :in_or_out, :document_date_on, :received_on, :external_number, :comment, :value_net, :value_vat
  belongs_to :category, :company
  sort :number, default: "-number"
  page size: 20, max_size: 100, count: true
  cache :exact if ENV["REDIS_URL"]
end

app = Castellan.app { resource MailLogResource }
run(->(env) { app.call(env).tap { |_, headers, _| headers["process"] = Process.pid.to_s } })
