# frozen_string_literal: true

require_relative "sequel_world"

class DetectSequelTest < Minitest::Test
  World = SequelWorld

  def test_an_association_read_in_a_loop_is_found_on_a_frozen_database
    finding = only do
      World::User.order(:id).all.each do |user|
        user.employee
      end
    end
    assert_equal [:n_plus_one, 5, 5, "SequelWorld::User#employee"], finding.to_h.values_at(:kind, :count, :parent_count, :association)
    assert_equal "test/detect/sequel_test.rb:#{__LINE__ - 4}", finding.location
    assert_equal "test/detect/sequel_test.rb:#{__LINE__ - 6}", finding.parent_location
    assert_equal "add .eager(:employee) where the users are loaded: #{finding.parent_location}", finding.fix
  end

  def test_reads_of_every_kind_of_association_are_observed
    { employee: World::User, tokens: World::User, tags: World::Post, author: World::Comment }.each do |name, model|
      finding = only { model.all.each { |record| Array(record.public_send(name)) } }
      assert_equal "#{model.name}##{name}", finding.association
      assert_includes finding.fix, "eager(:#{name})"
    end
  end

  class Reader < Sequel::Model(World::DB[:users])
    one_to_many(:two_posts, class: "SequelWorld::Post", key: :user_id) { |dataset| dataset.order(:id).limit(2) }
    one_to_one(:latest_post, class: "SequelWorld::Post", key: :user_id) { |dataset| dataset.order(Sequel.desc(:id)).limit(1) }
    one_to_many :two_tokens, class: "SequelWorld::Token", key: :user_id, order: :id, limit: 2
  end

  def test_a_limit_in_the_block_of_an_association_has_no_eager_load
    %i[two_posts latest_post].each do |name|
      finding = only { Reader.order(:id).all.map { |reader| reader.public_send(name) } }
      assert_nil finding.fix
      assert_includes finding.fix_refused, "a limit for each record of DetectSequelTest::Reader##{name}"
    end
    assert_includes only { Reader.order(:id).all.map { |reader| reader.two_tokens.map(&:id) } }.fix, "add .eager(:two_tokens) where"
  end

  class Barred < Sequel::Model(World::DB[:users])
    one_to_many(:own_posts, class: "SequelWorld::Post", key: :user_id, instance_specific: true) { |posts| posts.where(user_id: id) }
    one_to_many :their_posts, class: "SequelWorld::Post", dataset: -> { World::Post.where(user_id: id) }
    one_to_many :apart_posts, class: "SequelWorld::Post", key: :user_id, allow_eager: false
  end

  def test_an_association_that_sequel_does_not_eager_load_has_no_eager_load
    %i[own_posts their_posts apart_posts].each do |name|
      assert_raises(Sequel::Error) { Barred.eager(name).all }
      finding = only { Barred.order(:id).all.map { |user| user.public_send(name).map(&:id) } }
      assert_nil finding.fix
      assert_includes finding.fix_refused, "Barred##{name} cannot be preloaded"
    end
  end

  def test_a_count_that_names_the_model_is_one_grouped_calculation
    finding = only { World::User.order(:id).all.map { |user| World::Post.where(user_id: user.id).count } }
    assert_includes finding.fix.to_s, "Post.where(user_id: values).group_and_count(:user_id).as_hash(:user_id, :count)", finding.fix_refused
  end

  def test_records_loaded_one_by_one_must_be_loaded_together_first
    finding = only { World::User.order(:id).each(&:employee) }
    assert_includes finding.fix, "add .eager(:employee) and .all where the users are loaded: test/detect/sequel_test.rb:#{__LINE__ - 1}"
  end

  def test_records_of_a_limited_list_loaded_one_by_one_must_be_loaded_together_first
    finding = only { World::User.order(:id).limit(20).map { |user| user.employee&.id } }
    assert_includes finding.fix.to_s, "add .eager(:employee) and .all where the users are loaded: test/detect/sequel_test.rb"
  end

  def test_all_associations_below_records_that_are_loaded_one_by_one_are_one_fix
    findings = watch { World::User.order(:id).each { |user| user.posts.each { |post| post.comments.each(&:author) } } }
    assert_equal 3, findings.size
    findings.each { |finding| assert_includes finding.fix, "add .eager(posts: { comments: :author }) and .all where the users are" }
  end

  def test_the_time_of_a_block_is_not_that_of_the_statement_that_yields_to_it
    now = 0
    findings = Castellan::Clock.stub(:monotonic_ns, -> { now += 1 }) do
      Castellan::Detect.watch { World::User.order(:id).each { now += 1_000_000_000 } }
    end
    assert_empty findings
  end

  def test_the_fix_of_nested_loops_is_at_their_root
    findings = watch { World::User.all.each { |user| user.posts.each { |post| post.comments.each(&:author) } } }
    assert_equal 3, findings.size
    findings.each { |finding| assert_includes finding.fix, "add .eager(posts: { comments: :author }) where the users are loaded" }
  end

  def test_the_fix_below_eager_loaded_records_is_where_their_root_was_loaded
    finding = only { World::User.eager(posts: :comments).all.each { |user| user.posts.each { |post| post.comments.each(&:author) } } }
    assert_includes finding.fix, "eager(posts: { comments: :author }) where the users are loaded"
  end

  def test_eager_loads_that_a_block_narrows_are_followed_as_well
    narrowed = proc { |posts| posts.order(:id) }
    finding = only { World::User.eager(posts: narrowed).all.each { |user| user.posts.each { |post| post.comments.each(&:id) } } }
    assert_includes finding.fix, "eager(posts: :comments)"
    assert_includes finding.fix, "a block there stays: { block => … }"

    users = World::User.eager(posts: { narrowed => :comments })
    finding = only { users.all.each { |user| user.posts.each { |post| post.comments.each(&:author) } } }
    assert_includes finding.fix, "eager(posts: { comments: :author })"
  end

  def test_a_fix_uses_the_models_of_the_queried_database
    [World::User, World::Archive::User].each do |users|
      finding = only { users.eager(posts: :comments).all.each { |user| user.posts.each { |post| post.comments.each(&:author) } } }
      assert_includes finding.fix, "eager(posts: { comments: :author }) where the users are loaded"
      assert_equal users.name, finding.parent_model
    end
  end

  def test_the_last_of_a_filtered_association_needs_a_new_association
    finding = only { World::User.all.each { |user| user.tokens_dataset.where(on_behalf: false).order(:id).last } }
    assert_includes finding.fix, 'one_to_one(:last_token, class: "SequelWorld::Token", key: :user_id, order: Sequel.desc(:id)) ' \
                                 "{ |dataset| dataset.where(on_behalf: false) }; add .eager(:last_token)"
  end

  def test_a_new_association_loads_only_the_first_record_of_each_owner
    finding = only { World::User.all.each { |user| user.tokens_dataset.order(:id).last } }
    users = Class.new(World::User)
    users.class_eval(finding.fix[/declare in \S+: (.*?); add/, 1])
    loaded = Castellan::Instrument.record(tally = Castellan::Detect::Tally.new) { users.eager(:last_token).all }
    assert_equal World::Token.distinct.select_map(:user_id).size, tally.loads.last.count, finding.fix
    assert_equal World::User.all.map { |user| user.tokens_dataset.order(:id).last }, loaded.map(&:last_token)
  end

  # jbuilder's `json.employee user.employee.id`
  def test_a_builder_that_writes_a_member_of_the_same_name_is_no_reload
    json = Class.new { def employee(*) = nil }.new
    finding = only { World::User.order(:id).all.each { |user| json.employee user.employee&.id } }
    assert_equal "add .eager(:employee) where the users are loaded: #{finding.parent_location}", finding.fix
    assert_includes only { World::User.order(:id).all.each { |user| user.employee(reload: true) } }.fix_refused, "is loaded again"
  end

  def test_finders_duplicates_and_writes_in_a_loop_are_found
    assert_includes only { [1, 2, 3].map { |id| World::Tag[id] } }.fix, ".where(id: values).as_hash(:id)"
    assert_equal :duplicate, only { 3.times { World::User.first } }.kind
    World::DB.transaction(rollback: :always) do
      assert_includes only { 3.times { World::Employee.create(user_id: 1) } }.fix, ".multi_insert(rows)"
    end
  end

  def test_repeated_queries_of_datasets_without_a_model_are_found
    finding = only { [1, 2, 3].each { |id| World::DB[:posts_tags].where(post_id: id).all } }
    assert_equal :n_plus_one, finding.kind
    assert_includes finding.fix_refused, "query once, with post_id IN (…): no model of the table"
  end

  def test_eager_loading_and_batches_are_no_finding
    assert_empty(watch { World::User.eager(:employee, posts: :comments).all.each { |user| [user.employee, user.posts.map(&:comments)] } })
    assert_empty(watch { World::User.eager_graph(:employee).all.each(&:employee) })
    assert_empty(watch { World::TacticalUser.all.each(&:posts) })
    assert_empty(watch { World::Comment.order(:id).paged_each(rows_per_fetch: 5) { |comment| comment.id } })
    assert_empty(watch { World::Comment.select_map(:id).each_slice(5) { |ids| World::Comment.where(id: ids).all } })
  end

  def test_the_hooks_are_idle_without_a_recording
    World::User.first.employee
    assert_nil Castellan::Recording.current
    assert_empty(watch { nil })
  end

  private

  def watch(&block) = Castellan::Detect.watch(slow_ms: nil, &block)

  def only(&block)
    findings = watch(&block)
    assert_equal 1, findings.size, findings.join("\n")
    findings.first
  end
end
