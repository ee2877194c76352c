# frozen_string_literal: true

require_relative "active_record_world"
require "castellan/instrument/threads"

class DetectActiveRecordTest < Minitest::Test
  World = ActiveRecordWorld

  def test_an_association_read_in_a_loop_is_found_with_line_and_fix
    users = World::User.order(:id).load
    assert_empty watch { users.size }
    finding = only do
      World::User.order(:id).each do |user|
        user.employee
      end
    end
    assert_equal :n_plus_one, finding.kind
    assert_equal 5, finding.count
    assert_equal "test/detect/active_record_test.rb:#{__LINE__ - 5}", finding.location
    assert_equal "test/detect/active_record_test.rb:#{__LINE__ - 7}", finding.parent_location
    assert_equal 5, finding.parent_count
    assert_equal "ActiveRecordWorld::User#employee", finding.association
    assert_equal "user.employee", finding.source
    assert_equal "add .preload(:employee) where the users are loaded: #{finding.parent_location}", finding.fix
    assert_equal({ employee: {} }, finding.preload)
  end

  def test_reads_of_every_kind_of_association_are_observed
    { employee: World::User, tokens: World::User, comments: World::User, notes: World::User, tags: World::Post,
      user: World::Post, owner: World::Note }.each do |name, model|
      finding = only { model.all.to_a.each { |record| Array(record.public_send(name)) } }
      assert_equal "#{model.name}##{name}", finding.association
      assert_includes finding.fix, "preload(:#{name})"
    end
  end

  def test_several_associations_of_one_load_are_one_preload_call
    findings = watch { World::User.all.each { |user| [user.employee, user.tokens.to_a] } }
    assert_equal 2, findings.size
    findings.each { |finding| assert_includes finding.fix, "add .preload(:employee, :tokens) where" }
  end

  def test_the_fix_of_nested_loops_is_at_their_root
    findings = watch do
      World::User.all.to_a.each do |user|
        user.posts.each { |post| post.comments.each(&:author) }
      end
    end
    assert_equal %w[Comment#author Post#comments User#posts], names(findings)
    findings.each { |finding| assert_includes finding.fix, "add .preload(posts: { comments: :author }) where the users are loaded" }
  end

  def test_the_fix_below_preloaded_records_is_where_their_root_was_loaded
    finding = only { World::User.preload(posts: :comments).each { |user| user.posts.each { |post| post.comments.each(&:author) } } }
    assert_includes finding.fix, "preload(posts: { comments: :author }) where the users are loaded"
  end

  def test_the_fix_names_the_load_whose_records_the_loop_reads
    finding = only do
      World::Post.all.map(&:id)
      few = World::Post.where(user_id: [1, 2]).to_a
      World::Post.where(user_id: [1, 2, 3]).map(&:id)
      few.each(&:user)
    end
    assert_equal "test/detect/active_record_test.rb:#{__LINE__ - 4}", finding.parent_location
  end

  def test_records_with_a_loaded_association_send_no_query
    finding = only do
      World::Post.where(user_id: [1, 2, 3]).preload(:user).map { |post| post.user.name }
      World::Post.where(user_id: [1, 2]).or(World::Post.where(user_id: nil)).find_each { |post| post.user.name }
    end
    assert_equal "test/detect/active_record_test.rb:#{__LINE__ - 2}", finding.parent_location
    counted = only do
      World::User.preload(:tokens).map { |user| user.tokens.size }
      World::User.where(id: [1, 2]).map { |user| user.tokens.count + user.tokens.count }
    end
    assert_equal "test/detect/active_record_test.rb:#{__LINE__ - 2}", counted.parent_location
  end

  def test_the_last_of_a_filtered_association_needs_a_new_association
    finding = only do
      World::User.all.to_a.each do |user|
        user.tokens.where(on_behalf: false).last&.secret
      end
    end
    assert_includes finding.fix, "declare in ActiveRecordWorld::User: has_one :last_token, -> { where(on_behalf: false)" \
                                 '.order(id: :desc) }, class_name: "ActiveRecordWorld::Token"; add .preload(:last_token) where the users'
    assert_includes finding.fix, "read .last_token at test/detect/active_record_test.rb:#{__LINE__ - 5}"
  end

  def test_conditions_that_differ_from_record_to_record_have_no_preload
    finding = only { World::User.all.to_a.each { |user| user.tokens.where(secret: user.name).to_a } }
    assert_nil finding.fix
    assert_includes finding.fix_refused, "differ from record to record"
  end

  def test_a_count_of_each_becomes_one_grouped_count
    finding = only { World::User.all.to_a.each { |user| user.tokens.count } }
    assert_includes finding.fix, "Token.where(user_id: values).group(:user_id).count"
  end

  def test_each_way_to_query_an_association_has_a_suitable_fix
    fixes = {
      "has_one :chosen_token, -> { where(on_behalf: false) }" => only { users.each { |user| user.tokens.find_by(on_behalf: false) } },
      "has_one :last_post, -> { order(id: :desc) }" => only { users.each { |user| user.posts.order(:id).last } },
      "add .preload(:tokens) where" => only { users.each { |user| user.tokens.pluck(:id) } },
      "add .preload(:posts) where the users are loaded" => only { users.each(&:post_ids) },
      "Token.where(user_id: values).group(:user_id).sum(:id)" => only { users.each { |user| user.tokens.sum(:id) } },
      "Token.where(user_id: values).distinct.pluck(:user_id)" => only { users.each { |user| user.tokens.exists? } }
    }
    fixes.each { |fix, finding| assert_includes finding.fix.to_s, fix }
  end

  def test_a_limit_for_each_record_has_no_preload
    findings = [only { users.each { |user| user.posts.second } }, only { users.each { |user| user.posts.limit(2).to_a } },
                only { users.each { |user| user.posts.first(2) } }]
    findings.each { |finding| assert_includes finding.fix_refused.to_s, "limit for each record" }
  end

  class Reader < World::Base
    self.table_name = "users"
    has_many :two_posts, -> { order(:id).limit(2) }, class_name: "ActiveRecordWorld::Post", foreign_key: :user_id
    has_one :latest_post, -> { order(id: :desc).limit(1) }, class_name: "ActiveRecordWorld::Post", foreign_key: :user_id
    has_one :employee, class_name: "ActiveRecordWorld::Employee", foreign_key: :user_id
  end

  def test_an_association_with_a_limit_has_no_preload
    findings = Castellan::Detect.watch(slow_ms: nil) do
      Reader.order(:id).map { |reader| [reader.employee.id, reader.two_posts.map(&:id), reader.latest_post.id] }
    end.to_h { |finding| [finding.association[/\w+\z/], finding] }

    %w[two_posts latest_post].each do |name|
      assert_nil findings[name].fix
      assert_includes findings[name].fix_refused, "a limit for each record of DetectActiveRecordTest::Reader##{name}"
    end
    assert_includes findings["employee"].fix, "add .preload(:employee) where"
  end

  def test_bulk_writes_are_no_finding
    in_rolled_back do
      assert_empty(watch { 2.times { World::Tag.insert_all([{ name: "a" }, { name: "b" }]) } })
      assert_empty(watch { [[1, 2], [3, 4]].each { |ids| World::Tag.where(id: ids).delete_all } })
    end
  end

  def test_a_finder_in_a_loop_becomes_one_query
    finding = only { [1, 2, 3].map { |id| World::Tag.find(id) } }
    assert_equal :n_plus_one, finding.kind
    assert_includes finding.fix, ".where(id: values).index_by(&:id)"
  end

  def test_one_association_read_at_two_lines_is_one_finding
    finding = only do
      World::User.all.to_a.each_with_index do |user, index|
        if index.even?
          user.employee
        else
          user.employee.to_s
        end
      end
    end
    assert_equal 5, finding.count
  end

  def test_two_associations_with_one_fingerprint_are_two_findings
    findings = watch do
      World::Comment.all.to_a.each(&:author)
      World::Post.all.to_a.each(&:user)
    end
    assert_equal %w[Comment#author Post#user], names(findings).sort
  end

  def test_the_same_statement_with_the_same_values_is_a_duplicate
    finding = only { 3.times { World::User.find_by(name: "user 1") } }
    assert_equal :duplicate, finding.kind
    assert_equal 3, finding.count
  end

  def test_writes_in_a_loop_are_found
    findings = in_rolled_back do
      [only { 3.times { World::Tag.create!(name: "a") } }, only { World::Tag.all.to_a.each { |tag| tag.update!(name: "b") } },
       only { World::Tag.all.to_a.each(&:delete) }]
    end
    assert_equal %i[write_loop], findings.map(&:kind).uniq
    assert_equal ["insert_all", nil, nil], findings.map { |finding| finding.fix.to_s[/insert_all/] }
  end

  def test_query_cache_hits_are_counted_separately
    finding = only { World::Base.cache { World::Comment.all.to_a.each(&:author) } }
    assert_equal [5, 25], [finding.count, finding.cached_count]
  end

  def test_preloaded_records_are_no_finding
    users = World::User.preload(:employee, posts: :comments)
    assert_empty(watch { users.each { |user| [user.employee, user.posts.flat_map(&:comments)] } })
    assert_empty(watch { World::User.includes(:employee).references(:employee).each(&:employee) })
  end

  def test_batches_are_no_finding
    assert_empty(watch { World::Comment.find_each(batch_size: 5) { |comment| comment.id } })
    assert_empty(watch { World::Comment.in_batches(of: 5, &:to_a) })
    assert_empty(watch { World::Comment.in_batches(of: 5, use_ranges: true, &:to_a) })
    assert_empty(watch { World::Comment.ids.each_slice(5) { |ids| World::Comment.where(id: ids).to_a } })
    assert_empty(watch { 4.times { |page| World::Comment.order(:id).limit(5).offset(page * 5).to_a } })
  end

  def test_an_association_read_inside_batches_is_found
    finding = only { World::Comment.find_each(batch_size: 10) { |comment| comment.post } }
    assert_equal ["ActiveRecordWorld::Comment#post", 30], [finding.association, finding.count]
  end

  def test_polling_for_a_change_is_no_finding
    in_rolled_back do
      kinds = watch { 2.times { World::Tag.order(:id).first.destroy! } }.map(&:kind)
      assert_equal %i[write_loop], kinds
    end
  end

  def test_two_lines_with_equal_queries_are_no_finding
    assert_empty(watch do
      World::Tag.find(1)
      World::Tag.find(2)
    end)
  end

  def test_queries_in_enumerators_and_fibers_are_found
    assert_equal 5, only { World::User.all.to_a.each.lazy.map(&:employee).to_a }.count
    assert_equal 5, only { (walk = World::User.all.to_a.map(&:employee).each) && walk.next }.count
    assert_equal 5, only { World::User.all.to_a.each { |user| Fiber.new { user.employee }.resume } }.count
  end

  # Notifications of load_async arrive in another order.
  def test_queries_notified_in_another_order_are_found
    finding = only do
      3.times do |number|
        started_ns = 9_000_000 - number * 2_000_000
        Castellan::Recording.current.query("SELECT * FROM tags WHERE id = #{number}", "Tag Load", started_ns, 1_000, false, nil, nil)
      end
    end
    assert_equal [:n_plus_one, 3], [finding.kind, finding.count]
  end

  def test_a_finding_never_contains_values_of_queries
    finding = only { %w[hunter1 hunter2 hunter3].each { |secret| World::Token.find_by(secret: secret) } }
    refute_includes finding.to_h.except(:source).to_s, "hunter"
  end

  def test_an_error_closes_the_recording
    assert_raises(RuntimeError) { watch { raise "out" } }
    assert_nil Castellan::Recording.current
    refute_predicate Castellan::Instrument, :subscribed?
  end

  def test_recordings_may_be_nested
    inner = nil
    outer = watch { inner = watch { World::User.all.to_a.each(&:employee) } }
    assert_equal inner.map(&:count), outer.map(&:count)
  end

  def test_a_recording_contains_only_queries_of_its_thread
    findings = Array.new(4) do |number|
      Thread.new { watch { World::User.limit(number + 1).to_a.each(&:employee) } }
    end.map(&:value)
    assert_equal [[], [2], [3], [4]], findings.map { |list| list.map(&:count) }
  end

  def test_switched_off_it_finds_nothing
    with_env("CASTELLAN" => "off") { assert_empty(watch { World::User.all.to_a.each(&:employee) }) }
  end

  private

  # Loads the users anew at each call.
  def users = World::User.all.to_a

  def watch(&block) = Castellan::Detect.watch(slow_ms: nil, &block)

  def only(&block)
    findings = watch(&block)
    assert_equal 1, findings.size, findings.join("\n")
    findings.first
  end

  def names(findings) = findings.map { |finding| finding.association.delete_prefix("ActiveRecordWorld::") }

  def in_rolled_back
    result = nil
    World::Base.transaction do
      result = yield
      raise ActiveRecord::Rollback
    end
    result
  end
end
