# frozen_string_literal: true

require "test_helper"
require_relative "association_kinds_world"

# For each kind of association, links and included records equal those of a lazy load: from rows, from models,
# and from given records, loaded or not.
module AssociationKindsContract
  include ActiveRecordWorld::RolledBack

  KINDS = {
    Guest: { friend: :belongs_to, admirers: :has_many, tickets: :has_many, seats: :has_many, halls: :has_many, ticket_halls: :has_many,
             remarked_halls: :has_many, received_remarks: :has_many, first_remark: :has_one, second_remark: :has_one,
             heaviest_remark_of_friend: :has_one, last_remark_of_friend: :has_one, remark_about_guest: :has_one,
             two_heaviest: :has_many, next_two: :has_many, two_of_friend: :has_many, grave_remarks: :has_many,
             two_grave: :has_many, pals: :has_many, kept_remarks: :has_many },
    Hall: { seats: :has_many, tickets: :has_many, guests: :has_many, remarks: :has_many, last_remark: :has_one },
    Seat: { hall: :belongs_to, tickets: :has_many, guests: :has_many },
    Ticket: { guest: :belongs_to, seat: :belongs_to, hall: :belongs_to },
    Remark: { guest: :belongs_to, welcome_guest: :belongs_to }
  }.freeze
  # These need models: the related type has a composite key, or the scope of the association takes the owner.
  THROUGH_MODELS = { Guest: %i[seats halls grave_remarks two_grave], Hall: %i[seats], Seat: %i[hall tickets guests],
                     Ticket: %i[seat] }.freeze

  def setup
    super
    seed
  end

  def models = world

  KINDS.each do |model, associations|
    associations.each do |name, macro|
      define_method("test_#{name}_of_#{model.downcase}_is_what_the_record_answers") do
        resource = resource_of(model)
        related = world.const_get(model).reflect_on_association(name).klass.name.split("::").last
        resource.public_send(macro, name, resource: resource_of(related))
        expected = expected(model, name)
        refute_empty expected.values.flatten
        scope = all(model)
        [scope, scope.to_a, scope.preload(name == :second_remark || limited?(name) ? [] : name).to_a].each do |given|
          assert_equal expected, links(resource, given, name), "linked"
          assert_equal expected, links(resource, given, name, include: name.to_s), "linked beside what is included"
          assert_equal expected.values.flatten.uniq.sort, included(resource, given, name).sort
        end
        explained = resource.document(all(model)).explain
        assert_equal THROUGH_MODELS.fetch(model, []).include?(name), explained.include?("models of this type"), explained
      end
    end
  end

  def test_a_polymorphic_belongs_to_is_linked_from_its_columns_without_a_query
    resource = remarks
    sent = statements { @found = links(resource, all(:Remark), :about, kinds: true) }
    assert_equal 1, sent.size
    expected = all(:Remark).to_h { |remark| [remark.id.to_s, [["#{remark.about_type.split("::").last.downcase}s", remark.about_id.to_s]]] }
    assert_equal expected, @found
    assert_equal expected, links(resource, all(:Remark).to_a, :about, kinds: true)
    assert_equal expected, links(resource, all(:Remark).preload(:about).to_a, :about, kinds: true)
  end

  def test_a_polymorphic_belongs_to_is_included_with_one_query_per_type
    resource = remarks
    sent = statements { @document = JSON.parse(resource.render(all(:Remark), include: "about")) }
    assert_equal 3, sent.size
    expected = all(:Remark).map(&:about).uniq.map { |about|
      ["#{about.class.base_class.name[/\w+\z/].downcase}s", about.id.to_s, about.name]
    }
    [@document, JSON.parse(resource.render(all(:Remark).to_a, include: "about")),
     JSON.parse(resource.render(all(:Remark).preload(:about).to_a, include: "about"))].each do |document|
      assert_equal(expected.sort, document["included"].map { |one| [*one.values_at("type", "id"), one["attributes"]["name"]] }.sort)
    end
  end

  def test_two_paths_to_the_same_records_send_one_statement
    owners, remarks, tickets, guests = %i[Guest Remark Ticket Guest].map { |model| resource_of(model) }
    [remarks, tickets].each { |resource| resource.belongs_to(:guest, resource: guests) }
    { remarks: remarks, tickets: tickets }.each { |name, resource| owners.has_many(name, resource: resource) }
    owners.type("owners")
    sent = statements { @document = JSON.parse(owners.render(all(:Guest), include: "remarks.guest,tickets.guest")) }
    assert_equal 4, sent.size, sent.join("\n")
    included = @document["included"].group_by { |one| one["type"] }
    assert_equal(all(:Guest).map { |guest| [guest.id.to_s, guest.name] },
                 included["guests"].map { |one| [one["id"], one["attributes"]["name"]] }.sort_by { |id, _| id.to_i })
    linked = included["tickets"].to_h { |one| [one["id"], one.dig("relationships", "guest", "data", "id")] }
    assert_equal(all(:Ticket).to_h { |ticket| [ticket.id.to_s, ticket.guest_id.to_s] }, linked)
  end

  def test_an_include_below_a_polymorphic_relationship_may_exist_for_one_type_only
    resource = remarks { |guests, _halls| guests.belongs_to(:friend, resource: guests) }
    document = JSON.parse(resource.render(all(:Remark), include: "about.friend"))
    friends = all(:Remark).map(&:about).grep(world::Guest).filter_map(&:friend).map { |friend| friend.id.to_s }
    assert_empty friends - document["included"].map { |one| one["id"] }
    error = assert_raises(Castellan::BadRequest) { resource.render(all(:Remark), include: "about.nobody") }
    assert_includes error.message, "about.nobody is not a relationship of guests or halls"
  end

  def test_the_plan_names_the_tables_of_a_polymorphic_relationship
    document = remarks.document(all(:Remark))
    assert_equal %w[remarks], document.rendering.tables
    assert_equal %w[guests halls remarks], remarks.document(all(:Remark), include: "about").rendering.tables.sort
    assert_includes document.explain, "about: linkage only, no record of guests or halls is loaded"
  end

  def test_a_polymorphic_relationship_is_written_in_the_nested_format
    nested = JSON.parse(remarks.render(all(:Remark), include: "about", format: :nested))
    assert_equal(all(:Remark).map { |remark| remark.about.name }, nested.map { |remark| remark["about"]["name"] })
  end

  def test_a_polymorphic_type_without_a_resource_raises
    resource = resource_of(:Remark)
    resource.belongs_to(:about, resource: [resource_of(:Hall)])
    [all(:Remark), all(:Remark).to_a].each do |given|
      error = assert_raises(Castellan::ConfigurationError) { resource.render(given) }
      assert_match(/about: no resource is declared for records of .*Guest.*name it in resource: \(/, error.message)
    end
  end

  def test_a_polymorphic_association_without_types_raises_at_boot
    resource = resource_of(:Remark)
    guests = resource_of(:Guest)
    resource.belongs_to(:about, resource: guests)
    error = assert_raises(Castellan::DeclarationError) { resource.checked_rows }
    assert_includes error.message, "name the resources of its types, resource: [PostResource, UserResource]"
  end

  # The type column holds the name of the base class only.
  def test_a_polymorphic_belongs_to_finds_the_subclasses_of_one_table
    stars, regulars, guests = %i[Star Regular Guest].map { |name| resource_of(name).tap { |resource| resource.type("#{name}s".downcase) } }
    resource = resource_of(:Remark)
    resource.belongs_to(:about, resource: [guests, stars, resource_of(:Hall), regulars])
    expected = all(:Remark).to_h { |remark| [remark.id.to_s, [["#{remark.about.class.name[/\w+\z/]}s".downcase, remark.about_id.to_s]]] }
    assert_operator expected.values.flatten(1).map(&:first).uniq.size, :>=, 3
    [all(:Remark), all(:Remark).to_a, all(:Remark).preload(:about).to_a].each do |given|
      assert_equal expected, links(resource, given, :about, kinds: true)
      found = JSON.parse(resource.render(given, include: "about"))["included"].map { |one| one.values_at("type", "id") }
      assert_equal expected.values.flatten(1).uniq.sort, found.sort
    end
    assert_includes resource.document(all(:Remark)).explain, "about_type names the class above its types"
  end

  def test_a_hidden_record_of_one_type_is_not_linked
    welcome = resource_of(:WelcomeGuest)
    welcome.type("guests")
    resource = resource_of(:Remark)
    guest_name = world::Guest.polymorphic_name
    resource.belongs_to(:about, resource: { guest_name => welcome, world::Hall => resource_of(:Hall) })
    world::Guest.where(name: "ada").update_all(banned: true)
    hidden = world::Guest.find_by(name: "ada").id.to_s
    linked = links(resource, all(:Remark), :about, kinds: true).values.flatten(1)
    refute_includes linked, ["guests", hidden]
    assert_includes linked.map(&:first), "guests"
  end

  def test_each_subclass_of_one_table_has_its_resource
    resource = resource_of(:Guest)
    star = resource_of(:Star)
    star.type("stars")
    regular = resource_of(:Regular)
    regular.type("regulars")
    resource.has_many(:pals, resource: [star, regular])
    [all(:Guest), all(:Guest).to_a, all(:Guest).preload(:pals).to_a].each do |given|
      expected = all(:Guest).to_h { |guest|
        [guest.id.to_s, guest.pals.sort_by(&:id).map { |pal| [pal.class.name.split("::").last.downcase.pluralize, pal.id.to_s] }]
      }
      assert_equal expected, links(resource, given, :pals, kinds: true)
      types = JSON.parse(resource.render(given, include: "pals"))["included"].map { |one| one["type"] }.uniq
      assert_equal expected.values.flatten(1).map(&:first).uniq.sort, types.sort
    end
  end

  def test_composite_keys_are_joined
    seats = resource_of(:Seat)
    document = JSON.parse(seats.render(all(:Seat)))
    assert_equal(all(:Seat).map { |seat| "#{seat.row_id}_#{seat.number}" }, document["data"].map { |one| one["id"] })
    assert_equal "2_1", JSON.parse(seats.render(id: "2_1"))["data"]["id"]
    assert_equal '{"data":null}', seats.render(id: "9_9")
    assert_equal '{"data":null}', seats.render(id: "nonsense")
  end

  def test_a_table_or_view_without_a_key_is_read_by_the_declared_id_column
    view = Class.new(world::Base) { self.table_name = "castellan_hall_prices" }
    world.const_set(:HallPrice, view) unless world.const_defined?(:HallPrice)
    @connection.execute("CREATE VIEW castellan_hall_prices AS SELECT hall_code, SUM(price) AS price FROM tickets GROUP BY hall_code")
    view.reset_column_information
    assert_includes assert_raises(Castellan::DeclarationError) { viewing(view).definition }.message, "has no primary key (a view has none)"
    resource = viewing(view) { id :hall_code }
    document = JSON.parse(resource.render(view.order(:hall_code)))["data"]
    expected = world::Ticket.group(:hall_code).order(:hall_code).sum(:price)
    assert_equal(expected.map { |code, price| [code, price] }, document.map { |one| [one["id"], one["attributes"]["price"]] })
  ensure
    @connection.execute("DROP VIEW IF EXISTS castellan_hall_prices")
  end

  private

  def viewing(view, &body)
    Class.new(Castellan::Resource) do
      model view
      type "prices"
      attributes :price
      class_exec(&body) if body
    end
  end

  # Preloading drops the LIMIT of these associations, so it returns other records than a lazy load.
  def limited?(name) = %i[two_heaviest next_two two_of_friend two_grave].include?(name)

  def remarks
    guests = resource_of(:Guest)
    halls = resource_of(:Hall)
    yield guests, halls if block_given?
    resource = resource_of(:Remark)
    resource.belongs_to(:about, resource: [guests, halls])
    resource
  end

  def resource_of(name)
    model = world.const_get(name)
    Class.new(Castellan::Resource) do
      model model
      type name.to_s.downcase.pluralize
      attributes(*(model.column_names & %w[name text label price]).map(&:to_sym))
    end
  end

  def all(name)
    model = world.const_get(name)
    model.order(*Array(model.primary_key))
  end

  def id_of(record) = Array(record.id).join("_")

  # Without an order in the association any order is right; rows use that of the keys.
  def expected(model, name)
    all(model).to_h do |record|
      found = record.public_send(name)
      ids = found.respond_to?(:to_ary) ? found.map { |one| id_of(one) } : [found && id_of(found)].compact
      [id_of(record), ordered?(found) ? ids : ids.sort]
    end
  end

  def ordered?(found) = !found.respond_to?(:order_values) || found.order_values.any?

  def links(resource, given, name, kinds: false, **options)
    ordered = !kinds && ordered?(resource.definition.model.first.public_send(name))
    JSON.parse(resource.render(given, **options))["data"].to_h do |one|
      data = [one["relationships"][name.to_s]["data"]].flatten.compact
      found = kinds ? data.map { |link| link.values_at("type", "id") } : data.map { |link| link["id"] }
      [one["id"], ordered ? found : found.sort]
    end
  end

  def included(resource, given, name)
    document = JSON.parse(resource.render(given, include: name.to_s))
    own = document["data"].map { |one| one.values_at("type", "id") }
    linked = document["data"].flat_map { |one| [one["relationships"][name.to_s]["data"]].flatten.compact }
    document["included"].map { |one| one["id"] } + (linked.map { |link| link.values_at("type", "id") } & own).map(&:last)
  end

  def statements(&block)
    seen = []
    subscriber = ->(*, event) { seen << event[:sql] unless event[:name] == "SCHEMA" }
    ActiveSupport::Notifications.subscribed(subscriber, "sql.active_record", &block)
    seen
  end

  def seed
    guests = %w[ada bob cyd].each_with_index.map { |name, index| (index.even? ? world::Star : world::Regular).create!(name: name) }
    guests[1].update!(friend: guests[0])
    guests[2].update!(friend: guests[0])
    guests[0].pals = guests[1, 2]
    guests[1].pals = [guests[0]]
    halls = %w[great small].map { |name| world::Hall.create!(name: name, code: "#{name},1", owner: guests[0]) }
    seats = [[1, 1], [1, 2], [2, 1]].map { |row, number|
      world::Seat.create!(row_id: row, number: number, label: "#{row}/#{number}", hall: halls[row - 1])
    }
    [[0, 0, 5], [0, 2, 7], [1, 1, 9], [2, 2, 4]].each do |guest, seat, price|
      world::Ticket.create!(guest: guests[guest], seat: seats[seat], hall: seats[seat].hall, price: price)
    end
    [[0, halls[0], 1], [0, halls[1], 5], [0, guests[1], 3], [0, guests[2], 4], [1, halls[0], 2],
     [1, guests[0], 6]].each do |guest, about, weight|
      world::Remark.create!(guest: guests[guest], about: about, weight: weight, text: "w#{weight}")
    end
    guests.each { |guest| world::Remark.create!(guest: guest, about: halls[1], weight: 2, text: "again") }
  end
end

class AssociationKindsOnSqliteTest < Minitest::Test
  include AssociationKindsContract

  def world = AssociationKindsWorld.sqlite
end

class AssociationKindsOnPostgresTest < Minitest::Test
  include AssociationKindsContract

  def setup
    needs :postgres
    super
  end

  def world = AssociationKindsWorld.postgres
end
