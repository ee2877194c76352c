# frozen_string_literal: true

require "test_helper"

# A gem that replaces `build_arel`, as activerecord-multi-tenant does: the tenant is in the SQL of a relation, but in none of its values.
class RewrittenStatementsTest < Minitest::Test
  PROGRAM = <<~'RUBY'
    require "active_record"
    require "castellan"

    module Tenant
      class << self
        attr_accessor :current
      end

      def build_arel(...)
        arel = super
        table = klass.arel_table
        arel.where(table[:tenant_id].eq(Tenant.current)) if Tenant.current && klass.column_names.include?("tenant_id")
        arel
      end
    end
    ActiveRecord::Relation.prepend(Tenant) unless ARGV.include?("of one model")

    ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    connection = ActiveRecord::Base.connection
    connection.create_table(:countries) { |table| table.string :name }
    connection.create_table(:pages) { |table| table.string(:title) && table.integer(:tenant_id) && table.integer(:country_id) }
    Castellan::Versions::ExactVersions.new(ActiveRecord::Base).install(%w[countries pages])
    class Country < ActiveRecord::Base; has_many :pages; end
    class Page < ActiveRecord::Base; belongs_to :country; end
    if ARGV.include?("of one model")
      [ActiveRecord::Relation, ActiveRecord::AssociationRelation].each { |one| Page.relation_delegate_class(one).prepend(Tenant) }
    end
    country = Country.create!(name: "Chile")
    [1, 2].each { |tenant| Page.create!(title: "of #{tenant}", tenant_id: tenant, country: country) }

    class CountryResource < Castellan::Resource
      model Country
      attributes :name
      has_many :pages
      cache :exact
    end

    class PageResource < Castellan::Resource
      model Page
      attributes :title
      belongs_to :country
      cache :exact
    end

    store = Castellan::Store::MemoryStore.new
    Castellan.keep(store: store, versions: Castellan::Versions::ExactVersions.new(ActiveRecord::Base)) if ARGV.include?("keep")
    app = Castellan.app { [CountryResource, PageResource].each { |one| resource one } }
    paths = %w[/countries /countries?include=pages /pages /pages/1 /pages/2 /pages?include=country.pages]
    paths.product([1, 2, 1, 2]).each do |path, tenant|
      Tenant.current = tenant
      path, query = path.split("?")
      _, _, body = app.call("REQUEST_METHOD" => "GET", "PATH_INFO" => path, "QUERY_STRING" => query.to_s, "SCRIPT_NAME" => "",
                            "SERVER_NAME" => "a.test", "SERVER_PORT" => "80", "rack.url_scheme" => "http", "rack.input" => StringIO.new)
      text = +""
      body.each { |part| text << part }
      other = 3 - tenant
      puts "#{path}?#{query} shows #{tenant}: #{text}" if text.include?("of #{other}") || text.include?(%("type":"pages","id":"#{other}"))
    end
    puts "read"
  RUBY

  def test_a_tenant_never_gets_the_rows_of_another
    assert_equal "read\n", run_ruby("-e", PROGRAM)
  end

  def test_nor_the_cached_documents_of_another
    assert_equal "read\n", run_ruby("-e", PROGRAM, "keep")
  end

  def test_nor_if_the_relations_of_one_model_are_rewritten
    assert_equal "read\n", run_ruby("-e", PROGRAM, "keep", "of one model")
  end
end
