# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"
require "pg"
require "rack"
require "sqlite3"
require "memory_profiler"
require "stackprof"
require "castellan/serialize"

# Everything of other libraries that Castellan uses and that is not their public interface. A new version that changes one of these
# fails here; docs/design.md ("What is not public") says who uses what, and what happens where it is missing.
class ContractTest < Minitest::Test
  REFLECTION = %i[chain join_foreign_key association_primary_key through_reflection? through_reflection source_reflection scope options
                  klass].freeze

  def test_notifications_tell_whether_anybody_listens_to_an_event
    notifier = ActiveSupport::Notifications.notifier
    refute notifier.listening?("nothing.castellan")
    ActiveSupport::Notifications.subscribed(->(*) {}, "nothing.castellan") { assert notifier.listening?("nothing.castellan") }
  end

  def test_sockets_of_dalli_read_lines_with_gets_and_have_the_options_of_the_client
    needs :memcached
    require "dalli"
    servers = Castellan::TestServers.memcached_url.delete_prefix("memcached://")
    client = Dalli::Client.new(servers, protocol: :meta, raw: true, castellan: true)
    read = []
    tracing = TracePoint.new(:c_call) { |call| read << call.self if call.method_id == :gets }
    tracing.enable { client.get("a") }
    assert_equal [Dalli::Socket::TCP], read.map(&:class).uniq
    assert read.first.options[:castellan]
  end

  def test_notifications_name_the_listeners_of_an_event
    listening = ->(*) {}
    ActiveSupport::Notifications.subscribed(listening, "nothing.castellan") do
      found = ActiveSupport::Notifications.notifier.all_listeners_for("nothing.castellan")
      assert_equal [[listening, false]], found.map { |one| [one.delegate, one.silenced?("nothing.castellan") || false] }
    end
    refute ActiveRecord::ExplainRegistry.collect?
  end

  def test_notifications_publish_to_one_subscriber_of_monotonic_times
    seen = []
    subscriber = ActiveSupport::Notifications.monotonic_subscribe("nothing.castellan") { |*event| seen << event }
    assert_instance_of ActiveSupport::Notifications::Fanout::Subscribers::MonotonicTimed, subscriber
    subscriber.publish("nothing.castellan", 1.0, 2.0, "id", {})
    assert_equal [["nothing.castellan", 1.0, 2.0, "id", {}]], seen
  ensure
    ActiveSupport::Notifications.unsubscribe(subscriber)
  end

  def test_active_record_tells_whether_migrations_are_pending
    assert(%i[needs_migration? get_all_versions].all? { |name| ActiveRecord::MigrationContext.method_defined?(name) })
    assert [ActiveRecord::ConnectionAdapters::ConnectionPool, ActiveRecord::ConnectionAdapters::AbstractAdapter]
      .any? { |place| place.method_defined?(:migration_context) }
  end

  def test_active_record_finds_the_target_of_an_association_in_one_private_method
    assert ActiveRecord::Associations::Association.private_method_defined?(:find_target)
  end

  def test_active_record_preloads_and_reads_ids_in_one_method_each
    assert ActiveRecord::Relation.method_defined?(:preload_associations)
    assert ActiveRecord::Associations::CollectionAssociation.method_defined?(:ids_reader)
  end

  def test_active_record_makes_records_in_two_methods_that_can_be_prepended
    Castellan::Instrument.subscribe
    assert_includes ActiveRecord::Querying.ancestors, Castellan::Instrument::ActiveRecordInstrument::Records
    assert_includes ActiveRecord::Associations::JoinDependency.ancestors, Castellan::Instrument::ActiveRecordInstrument::Joins
  ensure
    Castellan::Instrument.unsubscribe
  end

  def test_active_record_has_the_reflection_methods_that_rows_need
    owner = Class.new(ActiveRecord::Base) { has_many :things, -> { order(:id) }, class_name: "ContractTest", foreign_key: :owner_id }
    missing = REFLECTION.reject { |name| owner.reflect_on_association(:things).respond_to?(name) }
    assert_empty missing
    assert_respond_to owner, :default_scopes
    assert_respond_to owner, :finder_needs_type_condition?
  end

  def test_rack_reads_the_order_of_forwarded_fields_in_one_private_method
    request = Class.new(Rack::Request) { private def forwarded_priority = super.reverse }
    env = { "REMOTE_ADDR" => "10.0.0.1", "HTTP_FORWARDED" => "for=8.8.8.8", "HTTP_X_FORWARDED_FOR" => "9.9.9.9" }
    assert_equal %w[8.8.8.8 9.9.9.9], [Rack::Request, request].map { |type| type.new(env).ip }
  end

  def test_normalizes_wraps_the_type_of_a_column
    record = Class.new(ActiveRecord::Base) { def self.name = "Note" }
    record.establish_connection(adapter: "sqlite3", database: ":memory:")
    record.connection.create_table(:notes) { |table| table.string :title }
    record.table_name = "notes"
    record.normalizes :title, with: ->(title) { title.strip }
    type = record.type_for_attribute(:title)
    assert_match(/\AActive(?:Record|Model)::.*\bNormalizedValueType\z/, type.class.name)
    assert_equal ["a", " a ", :string], [type.cast(" a "), type.__getobj__.cast(" a "), type.__getobj__.type]
  ensure
    record.remove_connection
  end

  def test_the_callback_of_has_secure_token_is_a_block_in_its_own_file
    model = Class.new(ActiveRecord::Base) { has_secure_token on: :initialize }
    macro = ActiveRecord::SecureToken::ClassMethods.instance_method(:has_secure_token)
    blocks = model.__callbacks.fetch(:initialize).map(&:filter)
    assert_equal([macro.source_location.first], blocks.map { |block| block.source_location.first })
  end

  def test_active_record_reads_an_attribute_and_preloads_missing_associations
    assert ActiveRecord::Base.method_defined?(:_read_attribute)
    assert ActiveRecord::Base.method_defined?(:association_cached?)
    preloader = ActiveRecord::Associations::Preloader.new(records: [], associations: [:things])
    assert_respond_to preloader, :call
  end

  def test_active_record_keeps_the_values_of_a_loaded_record_in_these_variables
    set = ActiveModel::AttributeSet::Builder.new({ "name" => ActiveModel::Type::String.new }).build_from_database({ "name" => "Ada" })
    assert_instance_of ActiveModel::LazyAttributeSet, set
    state = -> { %i[@values @casted_values @attributes].map { |name| set.instance_variable_get(name) } }
    assert_equal [{ "name" => "Ada" }, {}, {}], state.call
    set.fetch_value("name")
    assert_equal [{ "name" => "Ada" }, { "name" => "Ada" }, {}], state.call
    set.write_from_user("name", "Alan")
    assert_equal ["name"], state.call.last.keys
  end

  def test_active_record_keeps_what_it_writes_of_associations_in_a_module_of_this_name
    owner = Class.new(ActiveRecord::Base) { has_many :things, class_name: "ContractTest" }
    %i[things thing_ids].each { |name| assert owner.instance_method(name).owner.name.end_with?("::GeneratedAssociationMethods") }
  end

  def test_active_record_distinguishes_writes_from_reads
    assert ActiveRecord::ConnectionAdapters::AbstractAdapter.method_defined?(:write_query?)
    assert_respond_to ActiveRecord, :query_transformers
  end

  def test_active_record_builds_the_statement_of_a_relation_in_a_method_of_its_own_file
    assert_match %r{/active_record/relation/query_methods\.rb\z}, ActiveRecord::Relation.instance_method(:build_arel).source_location.first
  end

  def test_active_record_translates_a_driver_s_error_in_one_method
    assert_equal %i[req req req], ActiveRecord::ConnectionAdapters::AbstractAdapter.instance_method(:translate_exception_class).parameters.map(&:first)
  end

  def test_active_record_dumps_a_schema_and_disables_triggers_in_these_methods
    assert_empty(%i[tables ignored? remove_prefix_and_suffix].reject { |name| ActiveRecord::SchemaDumper.private_method_defined?(name) })
    require "active_record/connection_adapters/postgresql_adapter"
    assert ActiveRecord::ConnectionAdapters::PostgreSQLAdapter.method_defined?(:disable_referential_integrity)
  end

  def test_active_record_makes_records_of_a_join_in_one_method
    joins = ActiveRecord::Associations::JoinDependency
    assert joins.method_defined?(:instantiate)
    assert joins.private_method_defined?(:join_root) || joins.method_defined?(:join_root)
    assert_empty(%i[base_klass children].reject { |name| joins::JoinBase.method_defined?(name) })
    assert joins::JoinAssociation.method_defined?(:reflection)
  end

  def test_active_record_preloads_and_reads_associations_in_these_methods
    associations = ActiveRecord::Associations
    loader = associations::Preloader::Association
    assert_empty(%i[run run? owners].reject { |name| loader.method_defined?(name) || loader.private_method_defined?(name) })
    made = loader.new(nil, [], ActiveRecord::Reflection.create(:has_many, :things, nil, {}, ActiveRecord::Base), nil, nil, true)
    assert_equal [true, :things], [made.instance_variable_get(:@associate), made.instance_variable_get(:@reflection).name]
    assert associations::SingularAssociation.method_defined?(:reader)
    assert_empty([associations::Association, associations::CollectionProxy].reject { |type| type.method_defined?(:target) })
    assert_empty(%i[load_target include? size ids_reader].reject { |name| associations::CollectionAssociation.method_defined?(name) })
    assert associations::Association.private_method_defined?(:skip_strict_loading)
  end

  def test_active_record_queries_associations_in_methods_that_answers_of_siblings_replace
    associations = ActiveRecord::Associations
    assert_includes [0, -1], associations::SingularAssociation.instance_method(:find_target).arity
    assert_empty(%i[size empty? ids_reader null_scope?].reject { |name| associations::CollectionAssociation.method_defined?(name) })
    assert_empty(%i[first count exists?].reject { |name| associations::CollectionProxy.method_defined?(name) })
    assert_empty(%i[set_inverse_instance disable_joins].reject { |name| associations::Association.method_defined?(name) })
    assert_empty(%i[current_scope global_current_scope strict_loading_by_default].reject { |name| ActiveRecord::Base.respond_to?(name) })
  end

  def test_a_copy_of_a_record_without_its_cache_of_associations_has_none_loaded
    owner = Class.new(ActiveRecord::Base) { has_many :things, class_name: "ContractTest" }
    record = owner.allocate
    record.instance_variable_set(:@association_cache, { things: 1 })
    copy = record.clone.tap { |one| one.instance_variable_set(:@association_cache, {}) }
    assert_equal [true, false], [record, copy].map { |one| one.association_cached?(:things) }
  end

  def test_sequel_loads_associations_in_methods_that_answers_of_siblings_replace
    assert Sequel::Model.private_method_defined?(:_load_associated_objects)
    assert Sequel::Model::Associations::DatasetMethods.private_method_defined?(:eager_load)
  end

  def test_action_controller_calls_a_renderer_by_this_name
    require "action_controller"
    assert_equal "_render_with_renderer_jsonapi", ActionController::Renderers._render_with_renderer_method_name(:jsonapi)
    assert_includes ActionController::API._renderers, :json
  end

  class Ignored < ActiveRecord::Base; end

  def test_active_record_keeps_whether_a_statement_changed_the_row_in_these_variables
    Ignored.establish_connection(adapter: "sqlite3", database: ":memory:")
    Ignored.connection.create_table(:ignoreds) { |t| t.string(:name) }
    %w[UPDATE DELETE].each do |event|
      condition = "WHEN OLD.name = 'kept' BEGIN SELECT RAISE(IGNORE); END"
      Ignored.connection.execute("CREATE TRIGGER no_#{event} BEFORE #{event} ON ignoreds #{condition}")
    end
    changed = %w[free kept].map do |name|
      Ignored.transaction do # a commit resets them
        record = Ignored.create!(name: name).tap { |one| one.update(name: "next") }.tap(&:destroy)
        %i[@_trigger_update_callback @_trigger_destroy_callback].map { |kept| record.instance_variable_get(kept) }
      end
    end
    assert_equal [[true, true], [false, false]], changed
  ensure
    Ignored.remove_connection
  end

  def test_active_record_ends_a_transaction_in_these_methods
    required = %i[begin_transaction commit_transaction rollback_transaction current_transaction open_transactions throw_away!]
    assert_empty(required.reject { |name| ActiveRecord::ConnectionAdapters::AbstractAdapter.method_defined?(name) })
    begins = ActiveRecord::ConnectionAdapters::TransactionManager.instance_method(:begin_transaction)
    assert_includes begins.parameters, %i[key _lazy]
    assert ActiveRecord::ConnectionAdapters::Transaction.method_defined?(:dirty!)
  end

  def test_active_record_touches_the_records_of_a_transaction_late
    assert_empty(%i[has_defer_touch_attrs? touch_deferred_attributes].reject { |name| ActiveRecord::Base.private_method_defined?(name) })
    assert ActiveRecord::ConnectionAdapters::RealTransaction.method_defined?(:records)
  end

  def test_active_record_loads_where_a_trial_preloads
    assert_empty(%i[load scheduled?].reject { |name| ActiveRecord::Relation.method_defined?(name) })
    assert ActiveRecord::Relation.protected_method_defined?(:load_records)
    assert ActiveRecord::AssociationRelation.method_defined?(:proxy_association)
  end

  def test_sequel_loads_where_a_trial_does
    assert_empty(%i[each single_record!].reject { |name| Sequel::Dataset.method_defined?(name) })
    assert_empty(%i[_all post_load].reject { |name| Sequel::Dataset.private_method_defined?(name) })
    model = Class.new(Sequel::Model(Sequel.mock(keep_reference: false)[:things]))
    model.one_to_many(:parts, class: model, key: :part_id)
    assert_equal [nil, false, true], [model.dataset.send(:eager_load, [], { parts: nil }, model), model.association_reflections.frozen?,
                                      model.dataset.respond_to?(:eager_load, true)]
    opts = model.load(id: 1).parts_dataset.opts
    assert_equal [{ id: 1 }, :parts], [opts[:model_object].values, opts[:association_reflection][:name]]
  end

  # Two models of one specification name share a pool outside of these blocks.
  def test_active_record_lists_the_blocks_of_connected_to
    assert_empty ActiveRecord::Base.connected_to_stack
    stack = ActiveRecord::Base.connected_to(role: :reading) { ActiveRecord::Base.connected_to_stack.dup }
    refute_empty stack
    ActiveRecord::Base.connected_to_stack.replace(stack)
    assert_equal :reading, ActiveRecord::Base.current_role
    ActiveRecord::Base.connected_to_stack.clear
    assert_equal :writing, ActiveRecord::Base.current_role
    assert_equal ActiveRecord::Base.connection_specification_name, Class.new(ActiveRecord::Base).connection_specification_name
  end

  # `all` and `relation` of a model are the library's, unless the application replaces them.
  def test_active_record_makes_the_relation_of_all_rows_in_these_methods
    model = Class.new(ActiveRecord::Base)
    %i[all relation default_scoped unscoped].each { |name| assert_match(/\AActiveRecord::/, model.method(name).owner.name) }
    assert_nil model.current_scope || model.global_current_scope
  end

  def test_active_record_finds_the_class_of_a_row_in_this_method
    model = Class.new(ActiveRecord::Base)
    assert_equal ActiveRecord::Inheritance::ClassMethods, model.method(:discriminate_class_for_record).owner
    assert_equal [%i[req record]], [model.method(:discriminate_class_for_record).parameters.first]
  end

  # The registry of the thread has the blocks of `scoping` of each model.
  def test_active_record_keeps_the_scopes_of_blocks_in_one_registry
    model = Class.new(ActiveRecord::Base) { self.table_name = "things" }
    registry = -> { ActiveRecord::Scoping::ScopeRegistry.instance }
    relation = model.unscoped
    assert_nil registry.call.current_scope(model) || registry.call.global_current_scope(model)
    relation.scoping do
      assert_same relation, registry.call.current_scope(model)
      assert_includes registry.call.instance_variable_get(:@current_scope).values, relation
    end
    assert_equal [true, false], [relation, relation.limit(1)].map(&:empty_scope?)
    relation.scoping(all_queries: true) do
      assert_same relation, registry.call.global_current_scope(model)
      assert_includes registry.call.instance_variable_get(:@global_current_scope).values, relation
    end
  end

  def test_a_thread_has_its_state_in_one_hash_with_these_names
    state = -> { ActiveSupport::IsolatedExecutionState.context.active_support_execution_state || {} }
    model = Class.new(ActiveRecord::Base) { self.table_name = "things" }
    Thread.new do
      Time.use_zone("Hawaii") { assert_equal "Hawaii", state.call[:time_zone].name }
      assert_nil state.call[:time_zone]
      ActiveRecord::Base.connected_to(role: :reading) { assert_equal 1, state.call[:active_record_connected_to_stack].size }
      assert_empty state.call[:active_record_connected_to_stack]
      model.unscoped.scoping { assert model.current_scope }
      assert_same ActiveRecord::Scoping::ScopeRegistry.instance, state.call[:active_record_scope_registry]
      assert_nil state.call[:active_record_scope_registry].current_scope(model, true)
      assert_nil state.call[:active_record_connection_handler]
      ActiveRecord::Base.connection_handler = ActiveRecord::Base.default_connection_handler
      assert_same ActiveRecord::Base.default_connection_handler, state.call[:active_record_connection_handler]
    end.join
  end

  def test_a_cache_on_redis_tells_its_handler_that_redis_fails
    require "active_support/cache/redis_cache_store"
    handler = ->(method:, exception:, returning:) { flunk([method, exception, returning].inspect) }
    cache = ActiveSupport::Cache::RedisCacheStore.new(url: "redis://127.0.0.1:#{free_port}", error_handler: handler)
    assert_same handler, cache.instance_variable_get(:@error_handler)
    copy = cache.dup
    copy.instance_variable_set(:@error_handler, ->(**details) { raise ArgumentError, details.keys.sort.inspect })
    assert_equal "[:exception, :method, :returning]", assert_raises(ArgumentError) { copy.read("a") }.message
    refute ActiveSupport::Cache::MemoryStore.new.instance_variable_defined?(:@error_handler)
  end

  def test_the_error_about_a_readonly_attribute_names_it
    assert_equal "name", ActiveRecord::ReadonlyAttributeError.new("name").message
  end

  def test_a_pool_that_was_replaced_or_belongs_to_a_parent_process_can_be_recognised
    record = Class.new(ActiveRecord::Base) { self.abstract_class = true }
    Object.const_set(:ContractPoolRecord, record)
    pools = %w[one two].map { |name| record.establish_connection(adapter: "sqlite3", database: "file:#{name}?mode=memory") }
    assert_equal [false, true], pools.map(&:automatic_reconnect)
    pools.last.pool_config.discard_pool! # as after a fork
    assert_predicate pools.last, :discarded?
  ensure
    record&.remove_connection
    Object.send(:remove_const, :ContractPoolRecord)
  end

  def test_active_record_finds_the_pool_of_a_role_and_shard
    handler = ActiveRecord::ConnectionAdapters::ConnectionHandler.instance_method(:retrieve_connection_pool)
    assert_empty %i[role shard] - handler.parameters.filter_map { |kind, name| name if kind == :key }
  end

  def test_a_pool_makes_connections_and_has_one_that_tests_pin
    pool = ActiveRecord::ConnectionAdapters::ConnectionPool
    assert pool.method_defined?(:new_connection) || pool.private_method_defined?(:new_connection)
    %i[raw_connection disconnect! discard!].each { |name| assert ActiveRecord::ConnectionAdapters::AbstractAdapter.method_defined?(name) }
    assert_respond_to ActiveSupport::ForkTracker, :after_fork
    assert_respond_to ActiveRecord::ConnectionAdapters::AbstractAdapter, :_checkout_callbacks
    queue = ActiveRecord::ConnectionAdapters::ConnectionPool::Queue.new
    queue.add(:first)
    queue.add(:last)
    assert_equal [:last] * 2, [queue.instance_variable_get(:@queue).last, queue.poll], "the connection that is taken next"
    return unless pool.method_defined?(:pin_connection!)

    record = Class.new(ActiveRecord::Base) { self.abstract_class = true }
    Object.const_set(:ContractPinRecord, record)
    record.establish_connection(adapter: "sqlite3", database: ":memory:").pin_connection!(true)
    assert_same record.connection, record.connection_pool.instance_variable_get(:@pinned_connection)
    assert_kind_of pool::Queue, record.connection_pool.instance_variable_get(:@available)
    record.connection_pool.unpin_connection!
    assert_nil record.connection_pool.instance_variable_get(:@pinned_connection)
  ensure
    record&.remove_connection
    Object.send(:remove_const, :ContractPinRecord) if record
  end

  def test_active_record_lends_its_connection_in_one_method
    %i[raw_connection lock].each { |name| assert ActiveRecord::ConnectionAdapters::AbstractAdapter.method_defined?(name) }
  end

  def test_the_drivers_send_statements_through_these_methods
    pg = %i[exec async_exec sync_exec query async_query exec_params async_exec_params sync_exec_params exec_prepared async_exec_prepared
            sync_exec_prepared prepare async_prepare sync_prepare]
    assert_empty(pg.reject { |name| PG::Connection.method_defined?(name) })
    assert SQLite3::Database.method_defined?(:execute)
    assert SQLite3::Statement.method_defined?(:execute)
    database = SQLite3::Database.new(":memory:")
    assert_same database, database.prepare("SELECT 1") { |statement| statement.instance_variable_get(:@connection) }
  ensure
    database&.close
  end

  def test_rows_are_counted_where_they_are_read
    assert_equal [true, true], %i[next next_hash].map { |name| SQLite3::ResultSet.method_defined?(name) }
    database = Sequel.sqlite(test: false, keep_reference: false)
    database.execute("SELECT 1") { |results| assert_instance_of SQLite3::ResultSet, results }
    adapter = ActiveRecord::ConnectionAdapters::AbstractAdapter
    assert adapter.private_method_defined?(:log) || ActiveRecord.version >= Gem::Version.new("7.2")
  ensure
    database&.disconnect
  end

  def test_a_thread_is_started_by_these_methods
    assert Thread.private_method_defined?(:initialize)
    assert_respond_to Thread, :start
    assert_respond_to Thread, :fork
    assert_respond_to Fiber, :schedule
  end

  def test_sequel_loads_eagerly_and_reads_in_these_methods
    assert Sequel::Model::Associations::DatasetMethods.private_method_defined?(:eager_load)
    assert Sequel::Model.private_method_defined?(:load_associated_objects)
    assert Sequel::Model.method_defined?(:associations)
  end

  def test_sequel_lists_the_joins_of_an_eager_graph
    database = Sequel.sqlite(test: false, keep_reference: false)
    database.create_table(:things) { primary_key :id }
    model = Class.new(Sequel::Model(database[:things])) { one_to_many :parts, class: self, key: :id }
    graph = model.eager_graph(:parts).opts[:eager_graph]
    assert_equal [[:parts], [[]]], [graph[:reflections].values.map { |reflection| reflection[:name] }, graph[:requirements].values]
  ensure
    database&.disconnect
  end

  def test_sequel_names_the_type_of_a_column_by_that_of_the_database
    database = Sequel.sqlite(test: false, keep_reference: false)
    { boolean: "boolean", decimal: "numeric(10, 2)", datetime: "timestamp" }.each do |type, name|
      assert_equal type, database.send(:schema_column_type, name)
    end
  ensure
    database&.disconnect
  end

  # With a name from Ruby 3.3 on.
  def test_sequel_defines_readers_of_associations_in_a_module
    model = Class.new(Sequel::Model(Sequel.mock[:things])) { many_to_one :thing, class: self }
    owner = model.instance_method(:thing).owner
    assert_same owner, model.instance_variable_get(:@overridable_methods_module)
    assert owner.name.nil? || owner.name.end_with?("::@overridable_methods_module")
  end

  def test_sequel_keeps_the_methods_of_an_enum_in_a_module
    database = Sequel.sqlite(test: false, keep_reference: false)
    database.create_table(:things) { Integer :state }
    model = Class.new(Sequel::Model(database[:things])) { plugin :enum }
    model.enum :state, { open: 0, closed: 1 }
    assert_equal %i[closed! closed? open! open? state state=], model.instance_variable_get(:@enum_methods).instance_methods(false).sort
  end

  def test_sequel_returns_the_sql_of_a_prepared_statement
    database = Sequel.sqlite(test: false, keep_reference: false)
    assert_equal "SELECT 1 AS 'one'", database.select(Sequel.as(1, :one)).prepare(:all, :contract).prepared_sql.tr("`", "'")
    assert_respond_to database.prepared_statement(:contract), :prepared_sql
  ensure
    database&.disconnect
  end

  def test_sequel_logs_loads_and_walks_in_these_methods
    assert Sequel::Database.method_defined?(:log_connection_yield)
    assert Sequel::Dataset.private_method_defined?(:post_load)
    assert Sequel::Model::Associations::DatasetMethods.private_method_defined?(:post_load, false)
    assert Sequel::Model.private_method_defined?(:_load_associated_objects)
  end

  def test_memory_profiler_starts_stops_and_returns_totals_and_lists
    reporter = MemoryProfiler::Reporter.new(top: 5, ignore_files: /nothing/)
    reporter.start
    text = "a" * 100
    results = reporter.stop
    assert_equal 100, text.size
    totals = %i[total_allocated total_retained total_allocated_memsize total_retained_memsize]
    assert(totals.all? { |name| results.public_send(name).is_a?(Integer) })
    assert_equal %i[count data], results.allocated_memory_by_location.first.keys.sort
    assert_nil MemoryProfiler::Reporter.current_reporter
  end

  def test_stackprof_gives_stacks_from_the_outermost_frame_with_the_lines_that_ran
    StackProf.start(mode: :object, interval: 1, raw: true, aggregate: false)
    [1].each { Object.new }
    StackProf.stop
    frames, raw, lines = StackProf.results.values_at(:frames, :raw, :raw_lines)
    assert_equal raw.size, lines.size
    stacks = stacks_of(raw).map { |start, length| raw[start, length].map { |id| frames.fetch(id)[:name] }.zip(lines[start, length]) }
    stack = stacks.find { |one| one.last.first == "Class#new" }
    refute_includes stack.first.first, __method__.to_s
    assert_equal __LINE__ - 7, stack.reverse.find { |name, _line| name.include?(__method__.to_s) }.last
  end

  # Where each stack begins in stackprof's list, and how long it is.
  def stacks_of(raw)
    found = []
    position = 0
    while position < raw.size
      found << [position + 1, raw[position]]
      position += raw[position] + 2
    end
    found
  end

  def test_the_c_encoder_finds_the_results_of_pg
    skip "the extension is not built" unless Castellan::Serialize.native?
    assert_predicate Castellan::Native, :reads_results?
  end

  def test_a_statement_of_sqlite_returns_rows_as_arrays
    database = SQLite3::Database.new(":memory:")
    assert_equal [[1, "a"]], database.prepare("SELECT 1, 'a'") { |statement| statement.to_a }
  ensure
    database&.close
  end

  def test_sequel_writes_statements_in_methods_of_its_own_files
    model = Class.new(Sequel::Model(Sequel.mock[:items]))
    library = File.dirname(Sequel::Dataset.instance_method(:select).source_location.first, 2)
    methods = [*%i[select_sql sql].map { |name| model.dataset.method(name) }, model.method(:dataset)]
    assert_empty(methods.reject { |method| method.source_location.first.start_with?("#{library}/") })
    none = model.dataset.extension(:null_dataset).nullify
    assert_kind_of Sequel::Dataset::NullDataset, none
  end

  def test_sequel_appends_the_comment_of_this_method
    database = Sequel.sqlite(test: false, keep_reference: false)
    database.extension(:sql_comments)
    dataset = database[:items].comment("one")
    database.with_comments(request: "two") do
      assert_kind_of Sequel::SQLComments, dataset
      assert_equal "SELECT * FROM `items`", dataset.sql.delete_suffix(dataset.send(:_sql_comment))
    end
    assert_nil database[:items].send(:_sql_comment)
  ensure
    database.disconnect
  end

  def test_sequel_returns_the_server_that_a_block_reads
    database = Sequel.connect("sqlite:/", servers: { two: {} }, test: false, keep_reference: false)
    database.extension(:server_block)
    server = -> { database.pool.send(:pick_server, :read_only) }
    assert_equal %i[default two], [server.call, database.with_server(:two, &server)]
    database.create_table(:items) { primary_key :id }
    model = Class.new(Sequel::Model(database[:items])) { plugin :sharding }
    assert_equal %i[default two], [model.new, model.new_using_server(:two)].map { |record| record.send(:this_server) }
  ensure
    database.disconnect
  end

  def test_rack_keeps_the_applications_of_a_map_and_of_middleware_in_these_variables
    require "rack"
    app = ->(_env) {}
    map = Rack::URLMap.new("/api/" => app)
    assert_equal [["/api", app]], map.instance_variable_get(:@mapping).map { |_host, path, _pattern, inner| [path, inner] }
    assert_same app, Rack::Lint.new(app).instance_variable_get(:@app)
  end

  def test_rails_lists_routes_with_their_path_and_application
    require "action_dispatch"
    app = ->(_env) {}
    routes = ActionDispatch::Routing::RouteSet.new
    routes.draw { mount app => "/api" }
    assert_equal [["/api", false, app]], routes.routes.map { |route| [route.path.spec.to_s, route.path.anchored, route.app.app] }
  end

  def test_the_driver_gathers_the_statements_of_a_pipeline
    assert PG::Connection.private_method_defined?(:flush_data=), "each statement of a pipeline is sent by itself"
  end
end
