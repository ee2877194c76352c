# frozen_string_literal: true

require "test_helper"

# Conditions that no option of a dataset and no scope of an association shows: `nullify`, methods of a dataset module,
# an overridden `dataset`, and `scoping(all_queries: true)`.
class HiddenConditionsTest < Minitest::Test
  COMMON = <<~'RUBY'
    require "stringio"
    require "castellan"

    def titles(app, path)
      path, query = path.split("?")
      _, _, body = app.call("REQUEST_METHOD" => "GET", "PATH_INFO" => path, "QUERY_STRING" => query.to_s, "SCRIPT_NAME" => "",
                            "SERVER_NAME" => "a.test", "SERVER_PORT" => "80", "rack.url_scheme" => "http", "rack.input" => StringIO.new)
      text = +""
      body.each { |part| text << part }
      text.scan(/of \d/).uniq.join(" ")
    end

    def compare(paths, tenants = [1, 2, 1, 2])
      app = Castellan.app { [CountryResource, PageResource].each { |one| resource one } }
      paths.product(tenants).each do |path, tenant|
        $tenant = tenant
        text, expected = yield tenant, -> { titles(app, path) }, path
        puts "#{path} shows #{tenant}: #{text}" if text != expected
      end
      puts "read"
    end
  RUBY

  SEQUEL = <<~'RUBY'
    require "sequel"
    DB = Sequel.sqlite
    DB.extension :null_dataset
    DB.create_table(:countries) { primary_key :id; String :name }
    DB.create_table(:pages) { primary_key :id; String :title; Integer :tenant_id; Integer :country_id }
    DB[:countries].insert(name: "Chile")
    [1, 2].each { |tenant| DB[:pages].insert(title: "of #{tenant}", tenant_id: tenant, country_id: 1) }
    versions = Castellan::Versions::ExactVersions.new(DB)
    versions.install(%w[countries pages])
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: versions) if ARGV.include?("keep")
    class Country < Sequel::Model; one_to_many :pages, class: :Page; end
    class Page < Sequel::Model; many_to_one :country; end

    case ARGV.first
    when "select_sql"
      Page.dataset_module do
        def select_sql = opts[:tenanted] ? super : where(tenant_id: $tenant).clone(tenanted: true).select_sql
      end
    when "dataset"
      def Page.dataset = super.where(tenant_id: $tenant)
    when "block"
      Country.one_to_many(:pages, class: :Page) { |pages| pages.where(tenant_id: $tenant) }
    when "delay"
      Country.one_to_many :pages, class: :Page, conditions: { tenant_id: Sequel.delay { $tenant } }
    end

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
      scope { |pages| $tenant == 1 ? pages.nullify : pages } if ARGV.first == "nullify"
      cache :exact
    end
  RUBY

  RECORDS = <<~'RUBY'
    require "active_record"
    ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    connection = ActiveRecord::Base.connection
    connection.create_table(:countries) { |table| table.string :name }
    connection.create_table(:pages) { |table| table.string(:title) && table.integer(:tenant_id) && table.integer(:country_id) }
    versions = Castellan::Versions::ExactVersions.new(ActiveRecord::Base)
    versions.install(%w[countries pages])
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: versions) if ARGV.include?("keep")
    class Country < ActiveRecord::Base; has_many :pages; end
    class Page < ActiveRecord::Base; belongs_to :country; end
    country = Country.create!(name: "Chile")
    [1, 2].each { |tenant| Page.create!(title: "of #{tenant}", tenant_id: tenant, country: country) }
    Page.class_eval { default_scope { where(tenant_id: 1) } } if ARGV.first == "unscoped"
    def Page.default_scoped(...) = super.where(tenant_id: $tenant) if ARGV.first == "default_scoped"

    class CountryResource < Castellan::Resource
      model Country
      attributes :name
      has_many :pages
      cache :exact
    end

    class PageResource < Castellan::Resource
      model Page
      attributes :title
      cache :exact
    end
  RUBY

  OF_TENANT = <<~'RUBY'
    compare(%w[/pages /pages/1 /pages/2]) { |tenant, read, path| [read.call, path.match?(/\A\/pages(\/#{tenant})?\z/) ? "of #{tenant}" : ""] }
  RUBY

  def test_a_nullified_dataset_has_no_rows
    compared = "compare(%w[/pages /pages/1 /countries?include=pages]) { |tenant, read| text = read.call; [text, tenant == 1 ? '' : text] }"
    [[], %w[keep]].each { |further| assert_equal "read\n", run_ruby("-e", COMMON + SEQUEL + compared, "nullify", *further) }
  end

  def test_a_dataset_that_writes_its_own_sql_is_identified_by_it
    [[], %w[keep]].each { |further| assert_equal "read\n", run_ruby("-e", COMMON + SEQUEL + OF_TENANT, "select_sql", *further) }
  end

  def test_an_overridden_dataset_is_asked_in_each_request
    assert_equal "read\n", run_ruby("-e", COMMON + SEQUEL + OF_TENANT, "dataset", "keep")
  end

  def test_a_tenant_never_gets_what_the_association_of_another_shows
    compared = <<~'RUBY'
      compare(%w[/countries?include=pages], [1, 1, 1, 2, 2, 2, 1, 2]) { |tenant, read| [read.call, "of #{tenant}"] }
    RUBY
    %w[block delay].product([[], %w[keep]]) do |kind, further|
      assert_equal "read\n", run_ruby("-e", COMMON + SEQUEL + compared, kind, *further)
    end
  end

  def test_an_overridden_default_scope_method_is_asked_in_each_request
    [[], %w[keep]].each { |further| assert_equal "read\n", run_ruby("-e", COMMON + RECORDS + OF_TENANT, "default_scoped", *further) }
  end

  def test_a_scope_of_all_queries_also_narrows_associations
    compared = <<~'RUBY'
      compare(%w[/countries?include=pages /pages], [nil, 1, 2, nil, 1, 2]) do |tenant, read|
        next [read.call, "of 1 of 2"] unless tenant
        Page.where(tenant_id: tenant).scoping(all_queries: true) { [read.call, "of #{tenant}"] }
      end
    RUBY
    [[], %w[keep]].each { |further| assert_equal "read\n", run_ruby("-e", COMMON + RECORDS + compared, "scoping", *further) }
  end

  def test_a_scope_of_all_queries_also_narrows_what_some_records_lack
    compared = <<~'RUBY'
      Country.create!(name: "Peru").pages.create!(title: "of 2", tenant_id: 2)
      Page.where(tenant_id: 1).scoping(all_queries: true) do
        countries = Country.order(:id).to_a
        countries.first.pages.load
        puts CountryResource.render(countries, include: "pages").scan(/of \d/)
      end
    RUBY
    assert_equal "of 1\n", run_ruby("-e", COMMON + RECORDS + compared, "scoping")
  end

  # ActiveRecord merges the relation into that of the association, so each owner has the same records.
  def test_a_scope_of_all_queries_may_replace_the_key_of_an_association
    compared = <<~'RUBY'
      Country.create!(name: "Peru").pages.create!(title: "of 3", tenant_id: 1)
      read = -> { JSON.parse(CountryResource.render(Country.order(:id)))["data"].map { |one| one.dig("relationships", "pages", "data").size } }
      lazy = -> { Country.order(:id).map { |country| country.pages.to_a.size } }
      by = ->(*conditions) { conditions.map { |condition| Page.where(condition) } }
      equal = by[{ tenant_id: 1 }, { country_id: 1 }, { tenant_id: 1 }, { country_id: [1, 2] }]
      others = [*by[{ tenant_id: 1..2 }, { country_id: 1..2 }], Page.where.not(country_id: 1), Page.all, Page.unscope(where: :country_id)]
      [*equal, *others].each do |relation|
        relation.scoping(all_queries: true) do
          puts CountryResource.document(Country.all).explain[/scoping.*/], lazy.call.inspect
          puts "differs: #{read.call}" if read.call != lazy.call
        end
      end
    RUBY
    of_models = "scoping(all_queries: true) replaces the condition on its key"
    assert_equal ["", "[1, 1]", of_models, "[2, 2]", "", "[1, 1]", of_models, "[3, 3]", "", "[2, 1]", of_models, "[3, 3]",
                  of_models, "[1, 1]", "", "[2, 1]", of_models, "[3, 3]"],
                 run_ruby("-e", COMMON + RECORDS + compared, "scoping").split("\n")
  end

  # In a file, because only the source of a default scope shows that it is constant.
  def test_a_block_of_unscoped_shows_what_default_scopes_hide
    compared = <<~RUBY
      compare(%w[/countries?include=pages /countries/1?include=pages], [nil, 1, nil, nil, 1]) do |unscoped, read|
        unscoped ? Page.unscoped { [read.call, "of 1 of 2"] } : [read.call, "of 1"]
      end
    RUBY
    Dir.mktmpdir do |dir|
      file = File.join(dir, "unscoped.rb")
      File.write(file, COMMON + RECORDS + compared)
      [[], %w[keep]].each { |further| assert_equal "read\n", run_ruby(file, "unscoped", *further) }
    end
  end
end
