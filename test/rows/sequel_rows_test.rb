# frozen_string_literal: true

require "test_helper"
require "rack/mock_request"
require_relative "sequel_world"
require_relative "row_set_values"
Castellan::Resource && Castellan::Rows

# Rows have the values that Sequel's objects return, on SQLite and on PostgreSQL.
module SequelRowsContract
  def setup
    tables = %i[mail_logs_tags mail_logs tags companies categories]
    tables.each { |table| world::DB[table].delete }
    seed
  end

  def test_attributes_and_paths_equal_those_of_the_records
    resource = resource(world::MailLog) do
      attributes :number, :comment, :received_on, :value_net, :weight, :read, :created_at
      attribute :category_name, from: "category.name"
      attribute :parent_name, from: "company.parent.name"
      attribute(:label, columns: %i[number received_on]) { |row| "#{row.number} of #{row.received_on&.year}" }
      attribute(:shout) { |record| record.comment.to_s.upcase }
    end
    expected = world::MailLog.order(:id).map do |log|
      { "id" => log.id.to_s, "number" => log.number, "comment" => log.comment, "received_on" => log.received_on&.iso8601,
        "value_net" => log.value_net&.to_s("F"), "weight" => log.weight, "read" => log.read,
        "created_at" => log.created_at&.utc&.iso8601(3),
        "category_name" => log.category&.name, "parent_name" => log.company&.parent&.name,
        "label" => "#{log.number} of #{log.received_on&.year}", "shout" => log.comment.to_s.upcase }
    end
    assert_equal expected, rows(resource, world::MailLog.order(:id))
  end

  %i[children mail_logs last_two heavy_logs].each do |name|
    define_method("test_#{name}_are_linked_and_included_as_the_association_answers") { assert_related(world::Company, name) }
  end

  %i[parent latest_log].each do |name|
    define_method("test_#{name}_is_linked_and_included_as_the_association_answers") { assert_related(world::Company, name) }
  end

  def test_tags_are_linked_and_included_like_the_association
    assert_related(world::MailLog, :tags)
  end

  def test_a_category_is_linked_and_included_like_the_association
    assert_related(world::MailLog, :category)
  end

  def test_datasets_that_are_no_single_table_have_the_values_that_sequel_returns
    names = %i[number received_on value_net read weight created_at]
    table = world::DB[:mail_logs]
    [table.select(:id, *names), table.join(Sequel[:mail_logs].as(:same), id: :id).select_all(:mail_logs), table.from_self(alias: :logs),
     table.union(table), world::DB[:own].with(:own, table)].each do |dataset|
      resource = resource(dataset.naked) do
        type "logs"
        id :id
        attributes(*names)
        filter :number, :received_on
      end
      expected = dataset.naked.order(:id).map do |row|
        [row[:number], row[:received_on]&.iso8601, row[:value_net]&.to_s("F"), row[:read], row[:weight], row[:created_at]&.utc&.iso8601(3)]
      end
      assert_equal expected, JSON.parse(resource.render)["data"].sort_by { |log| Integer(log["id"]) }.map { |log| log["attributes"].values }
    end
  end

  def test_a_select_of_several_tables_and_of_expressions_is_read
    dataset = world::DB[:mail_logs].join(:companies, id: :company_id)
                                   .select(Sequel[:mail_logs][:id], Sequel[:companies][:name], (Sequel[:number] + 1).as(:next))
    resource = resource(dataset) do
      type "logs"
      id :id
      attributes :name, :next
      filter :name
      sort :name
    end
    expected = dataset.order(Sequel[:mail_logs][:id]).map { |row| [row[:id].to_s, row[:name], row[:next]] }
    refute_empty expected
    found = ->(**query) { JSON.parse(resource.render(**query))["data"].map { |log| [log["id"], *log["attributes"].values] } }
    assert_equal expected, found.call.sort_by { |id, *| Integer(id) }
    name = expected.first[1]
    assert_equal [name], found.call(filter: { name: name }, sort: "-name").map { |log| log[1] }.uniq
  end

  def test_a_select_of_expressions_keeps_its_order
    joined = world::DB[:mail_logs].join(:companies, id: :company_id)
    [world::DB[:mail_logs].select(:id, (Sequel[:number] + 1).as(:next)).order(Sequel.desc(:next), :id),
     world::DB[:mail_logs].select(:id, (Sequel[:number] + 1).as(:next)).reverse(:number, :id),
     world::DB[:mail_logs].select(:id, (Sequel[:number] + 1).as(:next)).order(Sequel.lit("number DESC, id")),
     world::DB[:mail_logs].select(:id, (Sequel[:number] + 1).as(:number)).order(Sequel.lit("-number"), :id),
     joined.select_all(:mail_logs).select_append(Sequel[:companies][:name].as(:next)).reverse(Sequel[:mail_logs][:id]),
     joined.select(Sequel[:mail_logs][:id], Sequel[:companies][:name].as(:next))
           .order(Sequel.function(:lower, Sequel[:companies][:name]).desc, Sequel[:mail_logs][:id])].each do |dataset|
      name = dataset.columns.last
      resource = resource(dataset) { [type("logs"), id(:id), attributes(name), page(size: 100)] }
      assert_equal dataset.map { |row| [row[:id].to_s, row[name]] },
                   JSON.parse(resource.render)["data"].map { |log| [log["id"], *log["attributes"].values] }
    end
  end

  def test_a_distinct_select_of_expressions_has_no_further_rows
    joined = world::DB[:companies].join(:mail_logs, company_id: :id)
    dataset = joined.select(Sequel[:companies][:id], Sequel.function(:upper, :name).as(:name)).distinct
    dataset = dataset.order(Sequel[:mail_logs][:number]) if world::DB.database_type == :sqlite # PostgreSQL refuses it
    resource = resource(dataset) { [type("companies"), id(:id), attributes(:name), page(size: 100)] }
    assert_equal dataset.map { |row| [row[:id].to_s, row[:name]] }.sort,
                 JSON.parse(resource.render)["data"].map { |company| [company["id"], *company["attributes"].values] }.sort
  end

  def test_a_tree_is_filtered_and_sorted_by_the_parent
    resource = resource(world::Company) do
      filter :parent, from: "parent.name"
      filter :grandparent, from: "parent.parent.id"
      sort :parent, from: "parent.name"
    end
    child = world::Company.exclude(parent_id: nil).first
    ids = ->(**query) { JSON.parse(resource.render(**query))["data"].map { |one| Integer(one["id"]) } }
    siblings = world::Company.where(parent_id: child.parent_id).order(:id).select_map(:id)
    assert_equal siblings, ids.call(filter: { parent: child.parent.name })
    grandchild = world::Company.create(name: "Grandchild", parent_id: child.id)
    assert_equal [grandchild.id], ids.call(filter: { grandparent: child.parent_id })
    names = ids.call(sort: "-parent").filter_map { |id| world::Company[id].parent&.name }
    assert_equal names.sort.reverse, names
  end

  def test_a_view_without_a_primary_key_is_read
    view = world::DB[:company_statistics]
    resource = resource(view) do
      type "company-statistics"
      id :company_id
      attributes :company_name, :mail_logs_count, :value_net
    end
    expected = view.order(:company_id).map do |row|
      value = row[:value_net].is_a?(BigDecimal) ? row[:value_net].to_s("F") : row[:value_net]
      { "id" => row[:company_id].to_s, "company_name" => row[:company_name], "mail_logs_count" => row[:mail_logs_count],
        "value_net" => value }
    end
    assert_equal expected, rows(resource, view.order(:company_id))
    assert_nil Castellan::Rows.for(view).primary_key
    assert_kind_of String, Castellan::Rows.for(view).scopes.tables(plan(resource), view)
    assert_equal [expected.first], rows(resource, Castellan::Rows.for(view).scopes.by_ids(view, [expected.first["id"]], :company_id))
  end

  def test_a_page_has_a_total_order_and_a_count
    scopes = Castellan::Rows.for(world::MailLog).scopes
    scope = scopes.from(world::MailLog)
    page = scopes.page(scopes.order(scope, [%i[category_id desc]]), limit: 2, offset: 1)
    assert_equal world::MailLog.order(Sequel.desc(:category_id), :id).limit(2, 1).map { |log| log.id.to_s }, scopes.ids(page)
    assert_equal world::MailLog.count, scopes.count(scope)
    assert_equal 2, scopes.count(page)
  end

  def test_a_join_to_many_never_multiplies
    tagged = world::MailLog.join(:mail_logs_tags, mail_log_id: :id)
    scopes = Castellan::Rows.for(world::MailLog).scopes
    assert_operator tagged.count, :>, scopes.count(tagged)
    resource = resource(world::MailLog) { attributes :number }
    assert_equal scopes.count(tagged), rows(resource, tagged).size
  end

  def test_ordering_by_a_joined_table_returns_each_row_once
    logs = world::MailLog
    companies = world::Company
    resource = resource(logs) { attributes :comment }
    [logs.association_join(:tags).order(Sequel[:tags][:label].desc, Sequel[:mail_logs][:id]),
     logs.association_left_join(:company).order(Sequel.desc(Sequel[:company][:name]), :number),
     companies.association_join(:mail_logs).order(Sequel.lit("mail_logs.number DESC"))].each do |dataset|
      expected = dataset.select_map(Sequel[dataset.first_source_alias][:id]).uniq
      refute_empty expected
      scopes = Castellan::Rows.for(dataset.model).scopes
      assert_equal expected, scopes.ids(dataset).map(&:to_i), dataset.sql
      assert_equal expected, scopes.load(dataset).map(&:id), dataset.sql
      assert_equal expected.first(1), scopes.ids(dataset.limit(1)).map(&:to_i), dataset.sql
      assert_equal expected.size, scopes.count(dataset)
    end
    assert_equal logs.count, rows(resource, logs.association_left_join(:tags).order(Sequel[:tags][:label])).size
  end

  def test_an_expression_selected_as_a_column_replaces_its_value
    resource = resource(world::MailLog) { attributes :comment }
    logs = world::MailLog.order(:id).select(:id, Sequel.function(:upper, :comment).as(:comment))
    assert_equal logs.map(&:comment), rows(resource, logs).map { |row| row["comment"] }
    refute_equal world::MailLog.order(:id).map(&:comment), logs.map(&:comment)
  end

  def test_an_association_block_with_the_owner_loads_models
    assert_includes Castellan::Rows.for(world::Company).association(:own_logs).reason, "looks at the owner"
    owner = world::Company.order(:id).first
    world::MailLog.create(company_id: owner.id, comment: owner.name)
    logs = resource(world::MailLog) { type "logs" }
    companies = resource(world::Company) { type "companies" }
    companies.has_many(:own_logs, resource: logs)
    expected = world::Company.order(:id).map { |company| company.own_logs.map { |log| log.id.to_s } }
    refute_empty expected.flatten
    assert_equal(expected, rows(companies, world::Company.order(:id)).map { |row| row["own_logs"] })
  end

  def test_an_association_block_that_decides_by_a_column_of_the_owner_loads_models
    first = world::Company.order(:id).get(:name)
    options = { class: world::MailLog, key: :company_id }
    model = Class.new(world::Company) do
      one_to_many(:seen_logs, **options) { |logs| name == first ? logs : logs.where(number: 0) }
      one_to_many(:named_logs, **options) { |logs| logs.where(comment: name.upcase) }
    end
    resource = resource(model) { type "companies" }
    resource.has_many(:seen_logs, :named_logs, resource: resource(world::MailLog) { type "logs" })
    %i[seen_logs named_logs].each do |name|
      assert_equal "its dataset looks at the owner", Castellan::Rows.for(model).association(name).reason
      expected = model.order(:id).map { |company| company.public_send(name).map { |log| log.id.to_s }.sort }
      assert_equal(expected, rows(resource, model.order(:id)).map { |row| row[name.to_s].sort })
    end
  end

  # Sequel returns nothing for an owner without the key, whatever the block adds.
  def test_an_association_whose_block_adds_an_or_has_nothing_for_a_missing_key
    id = world::MailLog.insert(number: 999, company_id: nil)
    companies = world::Company
    model = Class.new(world::MailLog) { many_to_one(:near, class: companies, key: :company_id) { |all| all.or(name: "two") } }
    logs = resource(model) { type "logs" }
    logs.attribute(:near_name, from: "near.name")
    logs.belongs_to(:near, resource: resource(companies) { type "companies" })
    expected = model.order(:id).map { |log| [log.near&.name, log.near&.id&.to_s] }
    assert_includes expected, [nil, nil]
    assert_equal(expected, rows(logs, model.order(:id)).map { |row| row.values_at("near_name", "near") })
  ensure
    world::MailLog.where(id: id).delete
  end

  # The recipe of Sequel's guide to advanced associations.
  def test_a_polymorphic_association_is_read_and_written
    notes = polymorphic_notes
    company = world::Company.order(:id).first
    log = world::MailLog.order(:id).first
    ids = [company, log].map { |subject| notes.create(subject: subject).id }
    resource = resource(notes) { type "notes" }
    resource.belongs_to(:subject, resource: [resource(world::Company) { type "companies" }, resource(world::MailLog) { type "logs" }])
    resource.writable(:subject)
    found = JSON.parse(resource.render(notes.order(:id)))["data"].map { |note| note.dig("relationships", "subject", "data") }
    assert_equal([["companies", company.id], ["logs", log.id]], found.map { |one| [one["type"], Integer(one["id"])] })
    linkage = { data: { type: "logs", id: log.id.to_s } }
    body = JSON.generate(data: { type: "notes", id: ids.first.to_s, relationships: { subject: linkage } })
    client = Rack::MockRequest.new(Castellan.app { resource resource })
    assert_equal 200, client.patch("/notes/#{ids.first}", input: body, "CONTENT_TYPE" => "application/vnd.api+json").status
    assert_equal log, notes[ids.first].subject
  end

  def test_ids_that_are_not_numbers_find_nothing
    scopes = Castellan::Rows.for(world::Company).scopes
    assert_empty scopes.ids(scopes.by_ids(world::Company.dataset, %w[1abc abc 99999999999999999999]))
  end

  def test_ids_that_are_not_dates_find_nothing
    scopes = Castellan::Rows.for(world::MailLog).scopes
    day = world::MailLog.exclude(received_on: nil).get(:received_on)
    found = ["abc", "", "2024-13-01", day.iso8601].map { |id| scopes.ids(scopes.by_ids(world::MailLog.dataset, [id], :received_on)) }
    assert_equal [[], [], []], found.first(3)
    refute_empty found.last
  end

  def test_a_query_by_id_is_the_same_without_a_dataset
    adapter = Castellan::Rows.for(world::Company)
    ids = world::Company.order(:id).select_map(:id)
    resource = resource(world::Company) { attributes :name }
    chosen = adapter.scopes.by_ids(world::Company.dataset, [ids[2].to_s, ids[0], 2**40])
    plan = plan(resource)
    found = RowSetValues.new(plan, adapter.fetch(plan, chosen)).to_a.map { |row| row["name"] }
    assert_equal %w[one three], found.sort
    assert_equal [[ids[0], ids[2]].map(&:to_s), 2], [adapter.scopes.ids(chosen).sort, adapter.scopes.count(chosen)]
    assert_instance_of Castellan::Rows::Ids::Chosen, adapter.scopes.by_ids(world::Company.dataset, ids)
    narrowed = adapter.scopes.by_ids(world::Company.where(name: "two"), ids)
    assert_equal(%w[two], RowSetValues.new(plan, adapter.fetch(plan, narrowed)).to_a.map { |row| row["name"] })
  end

  def test_errors_are_those_of_sequel
    resource = resource(world::Company) { attributes :name }
    error = assert_raises(Sequel::DatabaseError) { rows(resource, world::Company.where(Sequel.lit("no_such_column = 1"))) }
    assert_includes error.message, "no_such_column"
  end

  def test_it_reads_inside_the_transaction_of_the_caller
    resource = resource(world::Category) { attributes :name }
    world::DB.transaction(rollback: :always) do
      world::Category.create(name: "unseen")
      assert_includes rows(resource, world::Category.dataset).map { |row| row["name"] }, "unseen"
    end
    refute_includes rows(resource, world::Category.dataset).map { |row| row["name"] }, "unseen"
  end

  def test_the_plan_names_the_tables_that_it_reads
    resource = resource(world::MailLog) do
      attributes :number
      attribute :category_name, from: "category.name"
    end
    resource.has_many :tags, resource: resource(world::Tag) { attributes :label }
    assert_equal %w[categories mail_logs mail_logs_tags tags],
                 Castellan::Rows.for(world::MailLog).scopes.tables(plan(resource), world::MailLog.dataset).sort
  end

  private

  def polymorphic_notes
    world::DB.create_table!(:notes) do
      primary_key :id
      String :subject_type
      Integer :subject_id
    end
    Class.new(Sequel::Model(world::DB[:notes])) do
      many_to_one :subject, reciprocal: :notes, reciprocal_type: :one_to_many,
                            setter: ->(subject) { set(subject_id: subject&.pk, subject_type: subject&.model&.name) },
                            dataset: -> { Object.const_get(subject_type).where(id: subject_id) },
                            eager_loader: ->(options) { options[:rows].each(&:subject) }
    end
  end

  def assert_related(model, name)
    reflection = model.association_reflection(name)
    target = resource(reflection.associated_class) { type "related" }
    resource = resource(model) { type "owners" }
    many = reflection.returns_array?
    many ? resource.has_many(name, resource: target) : resource.has_one(name, resource: target)
    expected = model.order(:id).map { |owner| { "id" => owner.id.to_s, name.to_s => answer(owner, name, reflection) } }
    assert_equal expected, rows(resource, model.order(:id)), "linkage of #{name}"
    assert_equal expected.map { |owner|
      included(owner, name.to_s)
    }, rows(resource, model.order(:id), include: name.to_s), "included #{name}"
  end

  def answer(owner, name, reflection)
    found = owner.public_send(name)
    return found&.id&.to_s unless reflection.returns_array?

    (reflection[:order] ? found : found.sort_by(&:id)).map { |record| record.id.to_s }
  end

  def included(owner, name)
    ids = owner[name]
    owner.merge(name => ids.is_a?(Array) ? ids.map { |id| { "id" => id } } : ids && { "id" => ids })
  end

  def resource(model, &block)
    Class.new(Castellan::Resource) do
      model model
      class_eval(&block)
    end
  end

  def plan(resource, **query)
    Castellan::Plan.compile(resource.definition, Castellan::Plan::Request.parse(resource.definition, query.transform_keys(&:to_s)))
  end

  def rows(resource, scope, **query)
    plan = plan(resource, **query)
    RowSetValues.new(plan, Castellan::Rows.for(scope).fetch(plan, scope)).to_a
  end

  def seed
    categories = %w[letter parcel].map { |name| world::Category.create(name: name) }
    companies = %w[one two three].map { |name| world::Company.create(name: name) }
    companies[1].update(parent_id: companies[0].id)
    companies[2].update(parent_id: companies[0].id)
    tags = %w[red blue].map { |label| world::Tag.create(label: label) }
    logs = 6.times.map do |index|
      world::MailLog.create(number: 100 - index, comment: index.zero? ? nil : " n#{index} ",
                            received_on: index == 1 ? nil : Date.new(2024, 1, 1 + index),
                            value_net: index == 2 ? nil : BigDecimal("12.5") * index, weight: index * 0.75,
                            read: index == 3 ? nil : index.even?,
                            created_at: Time.utc(2024, 5, 6, 7, 8, index, 123_456),
                            category_id: index == 4 ? nil : categories[index % 2].id,
                            company_id: companies[index % 2].id)
    end
    tags.each { |tag| logs[1].add_tag(tag) }
    logs[3].add_tag(tags[1])
  end
end

class SequelRowsOnSqliteTest < Minitest::Test
  include SequelRowsContract

  def world = SequelWorld.sqlite

  def test_an_application_of_several_resources_connects_once
    file = File.join(Dir.mktmpdir, "pens.sqlite")
    connected = 0
    database = Sequel.sqlite(file, after_connect: ->(_connection) { connected += 1 })
    resources = %i[pens pencils crayons].map do |table|
      database.create_table(table) { primary_key :id }
      Class.new(Castellan::Resource) { type table.to_s }.tap { |one| one.model(Class.new(Sequel::Model(database[table]))) }
    end
    Castellan.app { resources.each { |one| resource one } }
    assert_equal [1, 0], [connected, database.pool.size]
  ensure
    Sequel::DATABASES.delete(database&.tap(&:disconnect))
    FileUtils.rm_rf(File.dirname(file)) if file
  end

  # The statements and the tables of a plan are kept for other requests, whose comments differ.
  def test_statements_do_not_have_the_comments_of_the_first_request
    resource, database = trees { |model| model.db.extension(:sql_comments) }
    resource.scope { |all| all.where { id < 3 }.comment("small") }
    log = StringIO.new
    database.loggers << Logger.new(log)
    %w[first second].each { |name| database.with_comments(request: name) { resource.render(include: "trees") } }
    assert_includes database.with_comments(request: "third") { resource.document(include: "trees").explain.to_s }, "tables: trees\n"
    assert_match(/SELECT/, log.string)
    refute_match(/request|small/, log.string)
  ensure
    database&.disconnect
  end

  def test_associations_of_a_model_that_changes_its_strings_are_read_as_rows
    resource, database = trees { |model| model.plugin(:force_encoding, "UTF-8") }
    refute_includes resource.document(include: "trees").explain.to_s, "because"
    assert_equal({ "1" => ["2"], "2" => [] }, links(resource))
  ensure
    database&.disconnect
  end

  def test_an_application_keeps_a_database_in_memory
    database = Sequel.sqlite
    database.create_table(:pens) { primary_key :id }
    pens = Class.new(Castellan::Resource) { type "pens" }
    pens.model(Class.new(Sequel::Model(database[:pens])))
    Castellan.app { resource pens }
    assert_predicate database[:pens], :empty?
  ensure
    database&.disconnect
  end

  private

  def trees
    database = Sequel.sqlite(keep_reference: false)
    database.create_table(:trees) { [primary_key(:id), Integer(:tree_id), String(:name)] }
    [nil, 1].each { |id| database[:trees].insert(tree_id: id) }
    model = Class.new(Sequel::Model(database[:trees])) { def self.name = "Tree" }
    yield model
    model.set_dataset(database[:trees])
    model.one_to_many(:trees, class: model, key: :tree_id)
    resource = Class.new(Castellan::Resource) do
      model model
      type "trees"
      cache :exact
      has_many :trees, resource: self
    end
    [resource, database]
  end

  def links(resource)
    JSON.parse(resource.render)["data"].to_h { |one| [one["id"], one["relationships"]["trees"]["data"].map { |link| link["id"] }] }
  end
end

class SequelRowsOnPostgresTest < Minitest::Test
  include SequelRowsContract

  def setup
    needs :postgres
    super
  end

  def test_the_tables_are_unknown_with_row_level_security
    world::DB.transaction(rollback: :always) do
      world::DB.run("ALTER TABLE categories ENABLE ROW LEVEL SECURITY")
      resource = resource(world::MailLog) { attribute :category_name, from: "category.name" }
      assert_kind_of String, Castellan::Rows.for(world::MailLog).scopes.tables(plan(resource), world::MailLog.dataset)
      unguarded = plan(resource(world::Company) { attributes :name })
      assert_equal %w[companies], Castellan::Rows.for(world::Company).scopes.tables(unguarded, world::Company.dataset)
    end
  end

  # As Puma does with workers, which get rows of each other if they share a connection.
  def test_processes_that_are_forked_after_the_application_share_no_connection
    logs = resource(world::MailLog) do
      type "logs"
      attributes :number
    end
    expected = world::MailLog.order(:id).limit(3).select_map(%i[id number])
    app = Castellan.app { resource logs }
    workers = expected.map { |id, number| fork { exit!(numbers(app, id) == Array.new(100, number)) } }
    assert_equal([0, 0, 0], workers.map { |pid| Process.wait2(pid).last.exitstatus })
  end

  def world = SequelWorld.postgres

  private

  def numbers(app, id)
    Array.new(100) { JSON.parse(app.call(Rack::MockRequest.env_for("/logs/#{id}")).last.to_enum.to_a.join).dig("data", "attributes", "number") }
  end
end
