# frozen_string_literal: true

require "test_helper"
require "active_support"
require "active_support/cache"
require "active_support/core_ext/object/json"
require "delegate"
require "castellan/serializer"

# Castellan::Serializer where jsonapi-serializer has no good answer to compare with.
class SerializerTest < Minitest::Test
  User = Struct.new(:id, :name, :role_ids, :roles, keyword_init: true) do
    def cache_key = "users/#{id}"
  end
  Role = Struct.new(:id, :title, keyword_init: true)

  class RoleSerializer
    include Castellan::Serializer

    attributes :title
  end

  def test_options_may_be_nil_and_attributes_an_array
    serializer = define { attributes %i[id name] }
    assert_equal({ id: 1, name: "Ada" }, serializer.new(ada, nil).serializable_hash[:data][:attributes])
  end

  def test_meta_may_be_a_hash_or_a_method
    assert_equal({ a: 1 }, define { meta({ a: 1 }) }.new(ada).serializable_hash[:data][:meta])
    assert_equal "Ada", define { meta :name }.new(ada).serializable_hash[:data][:meta]
  end

  def test_a_relationship_with_a_record_type_needs_no_serializer
    serializer = define { has_many :roles, record_type: :role }
    assert_equal [{ id: "3", type: :role }], serializer.new(ada).serializable_hash[:data][:relationships][:roles][:data]
  end

  # Applications define their own class methods, for blocks and conditions.
  def test_class_methods_of_the_application_replace_no_internal_method
    serializer = define do
      %i[source document records primary included around written generic? hash_for_json changed refuse].each do |name|
        define_method(name) { |_record, _more| flunk("#{name} was called") }
        define_singleton_method(name) { |_record, _more| flunk("#{name} was called") }
      end
      attributes :name
      has_many :roles, serializer: RoleSerializer
    end
    [ada, [ada]].each do |given|
      document = serializer.new(given, include: [:roles], meta: { a: 1 })
      assert_equal Castellan::Serializer::JsonText.of(document.serializable_hash), document.to_json
      assert_equal [{ id: "3", type: :role, attributes: { title: "Admin" } }], document.to_hash[:included]
      assert_includes document.explain, "user"
    end
  end

  def test_overriding_an_internal_of_jsonapi_serializer_raises
    error = assert_raises(Castellan::ConfigurationError) { define { define_singleton_method(:record_hash) { |*| {} } }.new(ada) }
    assert_includes error.message, "UserSerializer defines record_hash, which jsonapi-serializer calls and Castellan does not"
  end

  def test_overriding_an_internal_of_jsonapi_serializer_in_a_module_raises
    helper = Module.new { def attributes_hash(*) = {} }
    error = assert_raises(Castellan::ConfigurationError) { define { extend helper }.new(ada) }
    assert_includes error.message, "UserSerializer defines attributes_hash"
  end

  def test_overriding_process_options_raises
    error = assert_raises(Castellan::ConfigurationError) { define { define_method(:process_options) { |options| options } }.new(ada) }
    assert_includes error.message, "UserSerializer defines process_options"
  end

  def test_a_class_may_override_includes
    serializer = define do
      attributes :name
      extend(Module.new { def validate_includes!(includes) = super(includes - %i[friends.roles]) })
    end
    assert_empty serializer.new(ada, include: ["friends.roles"]).serializable_hash[:included]
    error = assert_raises(Castellan::Serializer::UnsupportedIncludeError) { serializer.new(ada, include: [:friends]) }
    assert_equal [:friends, serializer.name], [error.include_item, error.klass]
  end

  def test_changes_of_params_in_blocks_last_for_one_document
    serializer = define { attribute(:first) { |user, params| params[:first] ||= user.name } }
    names = ->(*users, **options) { serializer.new(users, options).serializable_hash[:data].map { |one| one[:attributes][:first] } }
    alan = User.new(id: 2, name: "Alan")
    assert_equal [%w[Ada Ada], %w[Alan Alan]], [names.call(ada, alan), names.call(alan, ada)]
    assert_equal %w[Alan], names.call(alan, meta: { a: 1 })
    assert_equal "Ada", serializer.new(ada).serializable_hash[:data][:attributes][:first]
    assert_equal "Alan", serializer.new(alan).serializable_hash[:data][:attributes][:first]
  end

  def test_to_hash_equals_that_of_jsonapi_serializer
    serializer = define { attributes :name }
    serializer.define_method(:serializable_hash) { { wrapped: super() } }
    assert_equal [[:wrapped], [:data]], [serializer.new(ada).serializable_hash.keys, serializer.new(ada).to_hash.keys]
  end

  def test_non_json_values_are_written_like_active_support
    value = { time: Time.utc(2024, 1, 2), day: Date.new(2024, 1, 2), nan: Float::NAN, decimal: BigDecimal("1.5"), 1 => nil, nil => 1.5,
              text: Class.new(String).new("<a>"), latin: "\xe9".dup.force_encoding("ISO-8859-1"), complex: Complex(1, 2),
              list: Class.new(Array).new([Time.utc(2024)]), hash: Class.new(Hash).new.update(a: :b), range: 1..2, role: Role.new(id: 1) }
    value.each { |key, one| assert_equal({ key => one }.to_json, Castellan::Serializer::JsonText.of({ key => one })) }
  end

  def test_a_serializer_without_a_type_raises
    error = assert_raises(Castellan::ConfigurationError) { Class.new { include Castellan::Serializer }.new(ada) }
    assert_equal "a serializer without a name has no type: write `set_type :user`", error.message
  end

  def test_a_subclass_without_a_name_has_the_type_of_its_superclass
    assert_equal :user, Class.new(define).new(ada).serializable_hash[:data][:type]
  end

  def test_a_path_reads_the_related_attribute
    serializer = define do
      attribute :title, from: "role.title"
      attribute :same, from: { role: :title }
    end
    user = Struct.new(:id, :role)
    assert_equal({ title: "Admin", same: "Admin" }, attributes_of(serializer, user.new(1, Role.new(title: "Admin"))))
    assert_equal({ title: nil, same: nil }, attributes_of(serializer, user.new(1, nil)))
  end

  # ActiveRecord makes to_ary private, and a delegator warns when a private method is called.
  def test_a_wrapped_record_is_one_record_and_a_wrapped_list_is_a_list
    role = Class.new(Role) do
      private

      def to_ary = nil
    end
    roles = [role.new(id: 3, title: "Admin")]
    serializer = define { has_many :roles, serializer: RoleSerializer }
    [SimpleDelegator.new(roles.first), SimpleDelegator.new(roles), roles, roles.first, Set.new(roles), roles.each].each do |related|
      user = User.new(id: 1, name: "Ada", role_ids: [3], roles: related)
      included = serializer.new(user, include: [:roles]).serializable_hash[:included]
      assert_equal [{ id: "3", type: :role, attributes: { title: "Admin" } }], included
    end
  end

  def test_an_unwritable_value_raises_with_record_and_member
    serializer = define { attributes :name }
    [User.new(id: 7, name: "\xFF"), User.new(id: 7, name: ["\xFF"])].each do |user|
      error = assert_raises(Castellan::EncodingError) { serializer.new([ada, user]).to_json }
      assert_match(/\Auser "7", member "name": /, error.message)
    end
  end

  def test_values_are_written_like_active_support
    values = { float: 1.5, nan: Float::NAN, infinite: -Float::INFINITY, decimal: BigDecimal("12.50"),
               time: Time.utc(2024, 1, 31, 10, 0, 0.125r),
               date: Date.new(2024, 1, 31), symbol: :a, text: "<b>\u2028&", nested: { "a" => [1, { b: Time.at(0).utc }] }, range: 1..2,
               big: 2**70, object: Struct.new(:x).new(1), set: Set[1] }
    serializer = define { values.each { |name, value| attribute(name) { value } } }
    document = serializer.new(ada)
    assert_equal document.serializable_hash.to_json, document.to_json
  end

  def test_a_document_does_not_change_its_arguments
    value = { time: Time.at(0).utc, list: [BigDecimal("1")] }.freeze
    value[:list].freeze
    serializer = define { attribute(:value) { value } }
    serializer.new(ada).to_json
    assert_equal({ time: Time.at(0).utc, list: [BigDecimal("1")] }, value)
  end

  def test_only_relationships_with_cached_true_are_cached
    asked = Hash.new(0)
    serializer = define do
      cache_options store: ActiveSupport::Cache::MemoryStore.new
      has_many(:kept, serializer: self, cached: true) { |user| (asked[:kept] += 1) && user.roles }
      has_many(:fresh, serializer: self) { |user| (asked[:fresh] += 1) && user.roles }
    end
    documents = Array.new(3) { serializer.new(ada).serializable_hash }
    assert_equal [{ kept: 1, fresh: 3 }, 1], [asked, documents.uniq.size]
    assert_equal %i[kept fresh], documents.last[:data][:relationships].keys
  end

  def test_a_document_does_not_change_a_cached_record
    serializer = define do
      cache_options store: ActiveSupport::Cache::MemoryStore.new(coder: nil)
      attributes :name
      meta { |_, params| params[:word] }
    end
    words = [nil, "Hi", nil]
    assert_equal(words, words.map { |word| serializer.new(ada, params: { word: word }).serializable_hash[:data][:meta] })
  end

  def test_record_cache_options_may_be_overridden
    seen = []
    store = Class.new { define_method(:fetch) { |_record, **options, &block| (seen << options) && block.call } }.new
    serializer = define do
      cache_options store: store, expires_in: 60
      attributes :name
      extend(Module.new { def record_cache_options(*) = super.merge(version: 7) })
    end
    serializer.new(ada, fields: { user: %i[name] }).serializable_hash
    assert_equal [{ expires_in: 60, namespace: "jsonapi-serializer-#{serializer.name}-fieldset:name", version: 7 }], seen
  end

  def test_the_namespace_of_a_shared_store_is_kept
    shared = ActiveSupport::Cache::MemoryStore.new
    names = %w[shop blog].map do |application|
      store = Class.new(SimpleDelegator) { define_method(:options) { { namespace: application } } }.new(shared)
      serializer = define do
        cache_options store: store
        attribute(:name) { application }
      end
      attributes_of(serializer, ada)[:name]
    end
    assert_equal %w[shop blog], names
  end

  def test_a_class_without_a_name_is_not_cached
    serializer = Class.new do
      include Castellan::Serializer

      set_type :user
      cache_options store: ActiveSupport::Cache::MemoryStore.new
      attributes :name
    end
    assert_equal %w[Ada Grace], %w[Ada Grace].map { |name| attributes_of(serializer, User.new(id: 1, name: name))[:name] }
  end

  def test_params_of_an_overridden_id_are_part_of_the_cache_key
    serializer = define do
      cache_options store: ActiveSupport::Cache::MemoryStore.new
      extend(Module.new { def id_from_record(user, params = {}) = "#{params[:tenant]}-#{user.id}" })
    end
    ids = [1, 2].map { |tenant| serializer.new(ada, params: { tenant: tenant }).serializable_hash[:data][:id] }
    assert_equal %w[1-1 2-1], ids
  end

  def test_params_that_blocks_change_still_make_a_cache_key
    asked = 0
    serializer = define do
      cache_options store: ActiveSupport::Cache::MemoryStore.new
      attribute(:name) { |user, params| (params[:found] ||= -> {}) && (asked += 1) && user.name }
    end
    2.times { serializer.new([ada, User.new(id: 2, name: "Alan")], params: { word: "Hi" }).serializable_hash }
    assert_equal 2, asked
  end

  def test_cache_keys_have_a_bounded_length
    serializer = define do
      cache_options store: ActiveSupport::Cache::MemoryStore.new
      attributes :name
    end
    options = Castellan::Serializer::RecordCache.options(serializer, {}, Array.new(100) { |n| :"field#{n}" }, [], {})
    assert_operator options[:namespace].bytesize, :<, 200
  end

  def test_a_serializer_of_blocks_is_thread_safe
    serializer = define { attribute(:name) { |user| user.name } }
    ask = ->(id) { Array.new(50) { serializer.new(User.new(id: id, name: "n#{id}")).to_json }.uniq }
    answers = Array.new(8) { |id| Thread.new { ask.call(id) } }.map(&:value)
    assert_equal [1], answers.map(&:size).uniq
    assert_equal 8, answers.uniq.size
  end

  def test_invalid_text_raises
    serializer = define { has_many :roles, record_type: :role }
    [{ include: "ro\xFF" }, { include: ["ro\xFF"] }, { fields: { "user" => "na\xFF" } }, { fields: { "us\xFF" => ["name"] } },
     { fields: { user: ["na\xFF"] } }].each do |options|
      error = assert_raises(Castellan::BadRequest) { serializer.new(ada, options) }
      assert_equal options.keys.first.to_s, error.parameter
    end
  end

  def test_too_many_paths_raise
    serializer = define { has_many :roles, record_type: :role }
    error = assert_raises(Castellan::BadRequest) { serializer.new(ada, include: Array.new(51) { |n| "roles.a#{n}" }) }
    assert_equal ["include names more than 50 paths", "include"], [error.message, error.parameter]
  end

  private

  def ada = User.new(id: 1, name: "Ada", role_ids: [3], roles: [Role.new(id: 3, title: "Admin")])

  # Defines a serializer without a constant but with a name.
  def define(&body)
    Class.new do
      def self.name = "SerializerTest::UserSerializer"
      include Castellan::Serializer

      class_eval(&body) if body
    end
  end

  def attributes_of(serializer, record) = serializer.new(record).serializable_hash[:data][:attributes]
end
