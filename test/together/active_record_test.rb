# frozen_string_literal: true

require "together/active_record_world"

# Records of one document load an association when the first of them walks it: the same bytes with fewer queries.
module TogetherOfActiveRecordContract
  # Reads a tree of associations from a record, each in one of the ways that a block may.
  module Walk
    TO_MANY = %i[map map map size count any? empty? none? exists? ids first].freeze

    module_function

    def random(model, random, depth)
      reflections = model.reflect_on_all_associations.reject { |one| one.name.match?(/\ALeft_Side|\AHABTM/i) }
      reflections.sample(random.rand(1..3), random: random).map do |reflection|
        nested = depth.zero? || reflection.polymorphic? ? [] : random(reflection.klass, random, depth - 1)
        [reflection.name, reflection.collection? ? TO_MANY.sample(random: random) : :itself, nested]
      end
    end

    def of(record, walks)
      return unless record

      [record.name, *walks.map { |name, way, nested| [name, value(record, name, way, nested)] }]
    end

    def value(record, name, way, nested)
      case way
      when :map then record.public_send(name).map { |one| of(one, nested) }
      when :itself then of(record.public_send(name), nested)
      when :first then of(record.public_send(name).first, nested)
      when :ids then record.public_send("#{name.to_s.singularize}_ids")
      else record.public_send(name).public_send(way)
      end
    end
  end

  # Builds the tables before the first test counts queries.
  def setup
    super
    world
  end

  def test_blocks_that_walk_three_associations_take_one_query_for_each
    store = serializer(:Store) do
      attribute(:tree) { |one| one.products.map { |product| product.variants.map { |variant| variant.prices.map(&:cents) } } }
    end
    together, apart = both { |options| store.new(world::Store.order(:id), options).to_json }
    assert_equal 4, together
    assert_operator apart, :>, 10 * together
  end

  def test_records_relations_hashes_and_single_records_load_together
    store = serializer(:Store) { attribute(:tree) { |one| one.products.map { |product| product.variants.map(&:name) } } }
    scope = -> { world::Store.order(:id) }
    [scope, -> { scope.call.to_a }, -> { scope.call.load }, -> { scope.call.first }].each do |given|
      assert_equal(3, both { |options| store.new(given.call, options).to_json }.first)
      assert_equal(3, both { |options| store.new(given.call, options).serializable_hash.to_json }.first)
    end
  end

  def test_a_resource_loads_together
    resource = resource(:Store) { attribute(:tree) { |one| one.products.map { |product| product.variants.map(&:name) } } }
    together, apart = both { |options| resource.document(world::Store.order(:id), **options).to_json }
    assert_equal 3, together
    assert_operator apart, :>, 10
    assert_equal 3, both { |options| resource.document(world::Store.order(:id).to_a, **options).to_json }.first
    streamed = both { |options| resource.document(world::Store.order(:id), **options).stream(size: 3).each.to_a.join }
    assert_operator streamed.first, :<, streamed.last
  end

  def test_numbers_ids_and_first_records_take_one_query_for_all
    %i[size count any? empty? none? exists? first].each do |way|
      store = serializer(:Store) { attribute(:way) { |one| one.products.public_send(way).then { |found| found.try(:name) || found } } }
      assert_equal(2, both { |options| store.new(world::Store.order(:id), options).to_json }.first, way.to_s)
    end
    assert_equal(2, both { |options|
      serializer(:Store) { attribute(:ids, &:product_ids) }.new(world::Store.order(:id), options).to_json
    }.first)
  end

  def test_a_number_loads_no_record
    store = serializer(:Store) { attribute(:size) { |one| [one.products.size, one.products.any?, one.product_ids] } }
    records = world::Store.order(:id).to_a
    store.new(records).to_json
    assert records.none? { |record| record.products.loaded? }
  end

  def test_random_walks_write_the_same_bytes
    (Castellan::TestHelpers.all? ? 25 : 8).times do |seed|
      random = Random.new(seed)
      model = [world::Store, world::Product, world::Variant, world::Review, world::Tag].sample(random: random)
      walks = Array.new(2) { Walk.random(model, random, 2) }
      serializer = serializer(model.name.split("::").last) do
        walks.each_with_index { |walk, index| attribute(index.to_s) { |one| Walk.of(one, walk) } }
      end
      scope = [model.order(:id), preloaded(model, random)].sample(random: random)
      records = random.rand < 0.5
      both("#{model} #{walks}") { |options| serializer.new(records ? scope.to_a : scope, options).to_json }
    end
  end

  def test_random_walks_take_fewer_queries_and_never_more
    more = (100..115).filter_map do |seed|
      random = Random.new(seed)
      walk = Walk.random(world::Store, random, 2)
      serializer = serializer(:Store) { attribute(:walk) { |one| Walk.of(one, walk) } }
      together, apart = both { |options| serializer.new(world::Store.order(:id), options).to_json }
      [walk, together, apart] if together > apart
    end
    assert_empty more
  end

  def test_records_that_the_application_preloaded_have_siblings
    store = serializer(:Store) do
      attribute(:tree) { |one| one.products.map { |product| product.variants.map { |variant| variant.prices.map(&:cents) } } }
    end
    scope = world::Store.order(:id).preload(products: :variants)
    assert_equal(3 + 1, both { |options| store.new(scope.to_a, options).to_json }.first)
  end

  def test_associations_that_a_sibling_does_not_walk_stay_unloaded
    store = serializer(:Store) { attribute(:names) { |one| one.id == 1 ? one.products.map(&:name) : [] } }
    records = world::Store.order(:id).to_a
    store.new(records).to_json
    assert_equal [true] + ([false] * 5), records.map { |record| record.association(:products).loaded? }
  end

  def test_a_scope_with_a_limit_or_of_the_owner_is_queried_for_each
    %i[first_products numbered_products].each do |name|
      store = serializer(:Store) { attribute(:names) { |one| one.public_send(name).map(&:name) } }
      together, apart = both { |options| store.new(world::Store.order(:id), options).to_json }
      assert_equal [7, 7], [together, apart], name.to_s
    end
  end

  # ActiveRecord's preload would not join the other table, and would return records of a condition in another order.
  def test_a_through_association_whose_preload_differs_is_queried_for_each
    { rising_prices: 3, placed_products: 3, dear_prices: 25, late_tags: 25, variants_prices: 25 }.each do |name, queries|
      product = serializer(:Product) { attribute(:names) { |one| one.public_send(name).map(&:name) } }
      assert_equal [queries, 25], both { |options| product.new(world::Product.order(:id), options).to_json }, name.to_s
    end
  end

  def test_nothing_loads_together_outside_of_a_document
    records = world::Store.order(:id).to_a
    serializer(:Store) { attribute(:names) { |one| one.products.map(&:name) } }.new(records).to_json
    others = world::Store.order(:id).to_a
    assert_equal(6, TogetherWorld.queries { others.each { |record| record.products.to_a } }.size)
    assert_nil Castellan::Recording.together
  end

  def test_an_exception_and_a_timeout_leave_nothing_behind
    raising = serializer(:Store) { attribute(:names) { |one| one.products.map(&:name) && raise(ArgumentError, "block") } }
    throwing = serializer(:Store) { attribute(:names) { |one| one.products.map(&:name) && throw(:over) } }
    assert_raises(ArgumentError) { raising.new(world::Store.order(:id)).to_json }
    catch(:over) { throwing.new(world::Store.order(:id)).to_json }
    assert_nil Castellan::Recording.together
    assert_equal(6, TogetherWorld.queries { world::Store.order(:id).to_a.each { |record| record.products.to_a } }.size - 1)
  end

  def test_it_is_switched_off_by_call_class_and_application
    body = ->(*) { attribute(:names) { |one| one.products.map(&:name) } }
    off = serializer(:Store, &body).tap { |one| one.together false }
    inherited = Class.new(off)
    resource = resource(:Store, &body)
    resource.together false
    scope = -> { world::Store.order(:id) }
    calls = [-> { off.new(scope.call).to_json }, -> { inherited.new(scope.call).to_json }, -> { resource.document(scope.call).to_json },
             -> { serializer(:Store, &body).new(scope.call, together: false).to_json },
             -> { without_together { serializer(:Store, &body).new(scope.call).to_json } },
             -> { with_env("CASTELLAN" => "off") { serializer(:Store, &body).new(scope.call).to_json } }]
    assert_equal([7] * 6, calls.map { |call| TogetherWorld.queries(&call).size })
    on = [-> { off.new(scope.call, together: true).to_json }, -> { resource.document(scope.call, together: true).to_json }]
    assert_equal([2] * 2, on.map { |call| TogetherWorld.queries(&call).size })
  end

  def test_another_value_is_an_error_that_names_the_option
    scope = world::Store.order(:id)
    calls = [-> { serializer(:Store).new(scope, together: "yes") }, -> { serializer(:Store).together(nil) },
             -> { resource(:Store).document(scope, together: 1) }, -> { resource(:Store).together(:no) },
             -> { Castellan.together = nil }]
    messages = calls.map { |call| assert_raises(Castellan::Error, &call).message }
    assert(messages.all? { |message| message.match?(/together:? must be true or false, got/) }, messages.inspect)
  end

  def test_a_document_inside_of_another_shares_its_records
    variant = serializer(:Variant) { attribute(:cents) { |one| one.prices.map(&:cents) } }
    options = {}
    store = serializer(:Store) do
      attribute(:variants) { |one| one.products.map { |product| variant.new(product.variants, options).serializable_hash } }
    end
    together, = both { |given| store.new(world::Store.order(:id), options.replace(given)).to_json }
    assert_equal 4, together
    options.replace(together: false)
    assert_operator TogetherWorld.queries { store.new(world::Store.order(:id)).to_json }.size, :>, 20
  end

  def test_strict_records_raise_as_before
    store = serializer(:Store) { attribute(:names) { |one| one.products.map(&:name) } }
    [true, false].each do |on|
      records = world::Store.order(:id).strict_loading.to_a
      assert_raises(ActiveRecord::StrictLoadingViolationError) { store.new(records, together: on).to_json }
    end
    mixed = world::Store.order(:id).to_a.each { |record| record.strict_loading! if record.id == 3 }
    error = assert_raises(ActiveRecord::StrictLoadingViolationError) { store.new(mixed).to_json }
    assert_includes error.message, "products"
  end

  def test_records_that_changed_in_memory_write_what_they_would_alone
    product = serializer(:Product) do
      attribute(:read) { |one| [one.store&.name, one.variants.map(&:name), one.variants.size, one.reviews.map(&:name)] }
    end
    given = lambda do
      world::Product.order(:id).to_a.tap do |records|
        records[0].store_id = 3
        records[1].store = world::Store.new(name: "New")
        records[2].variants.build(name: "Built")
        records[3].variants.load.first&.name = "Renamed"
        records[4].reload
        records << world::Product.new(name: "New", store_id: 2, variants: [world::Variant.new(name: "Its own")])
      end
    end
    write = ->(options) { given.call.then { |records| product.new(records, options).serializable_hash } }
    assert_equal write.call(together: false), write.call(together: true)
  end

  def test_a_record_that_is_reloaded_in_a_block_reads_the_database_again
    world::Base.transaction do
      store = serializer(:Store) do
        attribute(:names) do |one|
          before = one.products.map(&:name)
          one.products.klass.where(store_id: one.id).update_all("name = 'Changed'")
          [before, one.reload.products.map(&:name)]
        end
      end
      names = JSON.parse(store.new(world::Store.order(:id)).to_json)["data"].map { |object| object["attributes"]["names"].last.uniq }
      assert_equal [["Changed"]], names.uniq - [[]]
      raise ActiveRecord::Rollback
    end
  end

  def test_partial_and_destroyed_records_write_what_they_would_alone
    product = serializer(:Product) do
      attribute(:read) { |one| [one.has_attribute?(:store_id) && one.store&.name, one.variants.map(&:name), one.reviews.size] }
    end
    both do |options|
      document = nil
      world::Base.transaction do
        records = world::Product.order(:id).to_a
        records[1] = world::Product.select(:id, :name, :reviews_count).find(2)
        records[2].destroy
        document = product.new(records, options).to_json
        raise ActiveRecord::Rollback
      end
      document
    end
  end

  def test_a_type_that_is_no_class_is_an_error_of_its_record_alone
    world::Base.transaction do
      world::Image.where(id: 5).update_all(viewable_type: "Nothing::AtAll", viewable_id: 1)
      image = serializer(:Image) { attribute(:of) { |one| one.id == 5 ? nil : one.viewable&.name } }
      both { |options| image.new(world::Image.order(:id), options).to_json }
      raise ActiveRecord::Rollback
    end
  end

  def test_inverse_records_are_those_of_the_document
    product = serializer(:Product) { attribute(:same) { |one| one.variants.map { |variant| variant.product.equal?(one) } } }
    both { |options| product.new(world::Product.order(:id), options).to_json }
  end

  def test_a_block_inside_of_unscoped_has_the_answer_of_its_own_query
    tag = world::Tag
    product = serializer(:Product) do
      attribute(:tags) { |one| [one.tags.map(&:name), tag.unscoped { one.reload.tags.map(&:name) }, tag.unscoped { one.tags.size }] }
    end
    both { |options| product.new(world::Product.order(:id), options).to_json }
  end

  def test_threads_render_the_same_records_at_once
    store = serializer(:Store) { attribute(:tree) { |one| one.products.map { |product| product.variants.map(&:name) } } }
    expected = store.new(world::Store.order(:id), together: false).to_json
    found = Array.new(4) { Thread.new { store.new(world::Store.order(:id)).to_json } }.map(&:value)
    assert_equal [expected], found.uniq
  end

  def test_another_fiber_or_thread_in_a_block_queries_for_itself
    store = serializer(:Store) do
      attribute(:names) { |one| [Fiber.new { one.products.map(&:name) }.resume, Thread.new { one.reviews.map(&:name) }.value] }
    end
    both { |options| store.new(world::Store.order(:id), options).to_json }
  end

  private

  # Compares the bytes, and returns the numbers of queries together and apart.
  def both(message = nil)
    documents = []
    counts = [true, false].map { |on| TogetherWorld.queries { documents << yield(together: on) }.size }
    documents.map! { |document| unordered(JSON.parse(document)) } if self.class.name.include?("Postgres")
    assert_equal documents.last, documents.first, message
    counts
  end

  # The order of an association without one changes in PostgreSQL with the plan of the query.
  def unordered(value)
    case value
    when Array then value.map { |one| unordered(one) }.sort_by(&:to_s)
    when Hash then value.transform_values { |one| unordered(one) }
    else value
    end
  end

  def serializer(model, &body)
    Class.new do
      include Castellan::Serializer

      set_type model.to_s.downcase.to_sym
      attributes :name
      class_eval(&body) if body
    end
  end

  def resource(model, &body)
    of = world.const_get(model)
    Class.new(Castellan::Resource) do
      model of
      attributes :name
      class_eval(&body) if body
    end
  end

  def preloaded(model, random)
    names = model.reflect_on_all_associations.reject(&:polymorphic?).map(&:name)
    model.order(:id).preload(names.sample(2, random: random))
  end

  def without_together
    Castellan.together = false
    yield
  ensure
    Castellan.together = true
  end
end

class TogetherOfActiveRecordOnSqliteTest < Minitest::Test
  include TogetherOfActiveRecordContract

  def world = TogetherWorld.sqlite
end

class TogetherOfActiveRecordOnPostgresTest < Minitest::Test
  include TogetherOfActiveRecordContract

  def setup
    needs :postgres
    super
  end

  def world = TogetherWorld.postgres
end
