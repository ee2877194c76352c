# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"

# Associations as large applications declare them.
class LargeApplicationsTest < Minitest::Test
  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  class Fan < Base
    self.table_name = "fans"
  end

  class Like < Base
    self.table_name = "likes"
    belongs_to :fan, class_name: "LargeApplicationsTest::Fan"
  end

  class Album < Base
    self.table_name = "albums"
    has_many :likes, class_name: "LargeApplicationsTest::Like"
    has_many :fans, -> { order("created_at DESC") }, through: :likes
  end

  class FanResource < Castellan::Resource
    model Fan
    type "fans"
    attributes :name
  end

  class AlbumResource < Castellan::Resource
    model Album
    type "albums"
    attributes :title
    has_many :fans, resource: FanResource
  end

  TABLES = ["CREATE TABLE fans (id integer PRIMARY KEY, name text, created_at integer)",
            "CREATE TABLE likes (id integer PRIMARY KEY, album_id integer, fan_id integer, created_at integer)",
            "CREATE TABLE albums (id integer PRIMARY KEY, title text)",
            "INSERT INTO albums VALUES (1, 'a')", "INSERT INTO fans VALUES (1, 'x', 10), (2, 'y', 20), (3, 'z', 15)",
            "INSERT INTO likes VALUES (1, 1, 1, 300), (2, 1, 2, 200), (3, 1, 3, 100)"].freeze

  def teardown
    Base.remove_connection
    forget(@database) if @database
    super
  end

  # ActiveRecord and Sequel select "fans.*", so that the name is that of a column in the result.
  def test_an_order_without_a_table_is_that_of_the_orm
    Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    TABLES.each { |sql| Base.connection.execute(sql) }
    [Fan, Like, Album].each(&:reset_column_information)
    assert_equal [2, 3, 1], Album.first.fans.map(&:id)
    check(AlbumResource)
  end

  def test_an_order_without_a_table_is_that_of_sequel
    fans = sequel(*TABLES)
    albums = Class.new(Sequel::Model(@database[:albums]))
    albums.many_to_many :fans, class: fans, left_key: :album_id, right_key: :fan_id, join_table: :likes, order: Sequel.desc(:created_at)
    related = resource(fans, "fans", :name)
    check(resource(albums, "albums", :title) { has_many :fans, resource: related })
  end

  def test_a_page_of_a_scope_with_a_join_has_such_an_order_too
    Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    TABLES.each { |sql| Base.connection.execute(sql) }
    [Fan, Like, Album].each(&:reset_column_information)
    fans = Fan.joins("JOIN likes ON likes.fan_id = fans.id").order("created_at DESC")
    assert_equal %w[2 3], page(Class.new(FanResource) { page size: 2 }, fans)

    sequel_fans = sequel(*TABLES)
    of_sequel = sequel_fans.select_all(:fans).join(:likes, fan_id: :id).order(Sequel.desc(:created_at))
    assert_equal %w[2 3], page(resource(sequel_fans, "fans", :name) { page size: 2 }, of_sequel)
  end

  # From Sequel's guide to advanced associations: the key is compared in a subquery.
  def test_a_dataset_of_the_applications_own_is_read_for_each_record
    invoices = sequel("CREATE TABLE firms (id integer PRIMARY KEY, name text)",
                      "CREATE TABLE clients (id integer PRIMARY KEY, firm_id integer)",
                      "CREATE TABLE fans (id integer PRIMARY KEY, client_id integer, name text)",
                      "INSERT INTO firms VALUES (1, 'one'), (2, 'two')", "INSERT INTO clients VALUES (2, 1), (1, 2)",
                      "INSERT INTO fans VALUES (1, 2, 'a'), (2, 2, 'b'), (3, 1, 'c')")
    clients = @database[:clients]
    firms = Class.new(Sequel::Model(@database[:firms]))
    firms.one_to_many :invoices, class: invoices, key: :client_id, order: :id,
                                 dataset: proc { |r| r.associated_dataset.where(client_id: clients.where(firm_id: id).select(:id)) }
    related = resource(invoices, "invoices", :name)
    firm = resource(firms, "firms", :name) { has_many :invoices, resource: related }
    [[], %w[invoices]].each do |include|
      found = JSON.parse(firm.render(include: include))["data"].map { |one|
        one["relationships"]["invoices"]["data"].map { |two|
          two["id"]
        }
      }
      assert_equal [%w[1 2], %w[3]], found
    end
  end

  # Class table inheritance: the rows of a manager are in two tables.
  STAFF = <<~'RUBY'
    require "sequel"
    require "castellan"
    DB = Sequel.sqlite
    DB.create_table(:employees) { primary_key :id; String :name; String :kind }
    DB.create_table(:managers) { foreign_key :id, :employees, primary_key: true; Integer :staff }
    class Employee < Sequel::Model; plugin :class_table_inheritance, key: :kind; end
    class Manager < Employee; end
    class EmployeeResource < Castellan::Resource; model Employee; types "ManagerResource"; attributes :name; cache :exact; end
    class ManagerResource < EmployeeResource; model Manager; attribute :staff, as_stored: true; end
    versions = Castellan::Versions::ExactVersions.new(DB)
    versions.install(%w[employees managers])
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: versions)
    Manager.create(name: "m", staff: 3)
    2.times do
      puts [EmployeeResource.render[/"staff":(\d+)/, 1], Castellan.cache.fetch("x", depends_on: Manager) { Manager.first.staff.to_s }].join(" ")
      Manager.first.update(staff: 99)
    end
    puts EmployeeResource.document.explain
  RUBY

  def test_a_change_of_the_second_table_of_a_model_is_noticed
    lines = run_ruby("-e", STAFF).lines(chomp: true)
    assert_equal ["3 3", "99 99"], lines.first(2)
    assert_includes lines.last, "Manager reads a subquery (class table inheritance), whose tables are not known"
  end

  private

  def page(resource, scope)
    JSON.parse(resource.render(scope, query: { "page" => { "number" => "1" } }))["data"].map { |fan| fan["id"] }
  end

  # @return [Class] the model of fans
  def sequel(*statements)
    @database = Sequel.sqlite
    statements.each { |sql| @database.run(sql) }
    Class.new(Sequel::Model(@database[:fans]))
  end

  def resource(of, name, attribute, &block)
    Class.new(Castellan::Resource) do
      model of
      type name
      attributes attribute
      class_eval(&block) if block
    end
  end

  def check(resource)
    [{}, { include: "fans" }, { id: 1 }, { id: 1, include: "fans" }].each do |options|
      document = JSON.parse(resource.document(**options).to_json)
      album = document["data"].is_a?(Hash) ? document["data"] : document["data"].first
      assert_equal(%w[2 3 1], album["relationships"]["fans"]["data"].map { |one| one["id"] }, options.inspect)
    end
  end
end
