# frozen_string_literal: true

require_relative "active_record_world"
require_relative "sequel_world"

# Advice that would mislead is left out.
class DetectAdviceTest < Minitest::Test
  World = ActiveRecordWorld

  class Node < World::Base
    self.table_name = "advice_nodes"
    connection.create_table(:advice_nodes) { |t| [t.integer(:parent_id), t.integer(:author_id), t.datetime(:updated_at), t.string(:type)] }
    has_many :children, class_name: "DetectAdviceTest::Node", foreign_key: :parent_id, inverse_of: false
    has_many :new_children, -> { where(updated_at: nil) }, class_name: "DetectAdviceTest::Node", foreign_key: :parent_id, inverse_of: false

    belongs_to :author, class_name: "ActiveRecordWorld::User", optional: true

    def tree = [id, children.map(&:tree)]
    def children_of_its_author = children.where(author_id: its_author).to_a
    def its_author = 7

    Twig = Class.new(self)
    Bud = Class.new(self)
    root = create!
    2.times { |number| child = create!(parent_id: root.id, author_id: number + 1) and 2.times { create!(parent_id: child.id) } }
  end

  class Holder < World::Base
    self.table_name = "users"
    has_many :tokens, class_name: "ActiveRecordWorld::Token", foreign_key: :user_id, inverse_of: false
    has_many :secret_tokens, -> { where(secret: "x") }, class_name: "ActiveRecordWorld::Token", foreign_key: :user_id, inverse_of: false
  end

  class Page < World::Base
    self.table_name = "posts"
    has_one :last_remark, -> { order(id: :desc) }, class_name: "DetectAdviceTest::Remark", foreign_key: :post_id, inverse_of: false
    has_many :remarks, class_name: "DetectAdviceTest::Remark", foreign_key: :post_id, inverse_of: false
  end

  class Remark < World::Base
    self.table_name = "comments"
    belongs_to :author, class_name: "ActiveRecordWorld::User"
    def author_name = author.name
  end

  SequelWorld::DB.create_table(:advice_leaves) { [primary_key(:id), Integer(:parent_id), String(:color)] }
  class Leaf < Sequel::Model(SequelWorld::DB[:advice_leaves])
    one_to_many :leaves, class: self, key: :parent_id
    one_to_many(:red_leaves, class: self, key: :parent_id) { |leaves| leaves.where(color: "red") }

    [nil, 1, 1].each { |parent_id| create(parent_id: parent_id, color: "red") }
  end

  def test_a_preload_goes_through_the_association_that_loaded_the_records
    findings = Castellan::Detect.watch(slow_ms: nil) do
      Page.all.map do |page|
        last = page.last_remark.id
        [last, page.remarks.map(&:author_name)]
      end
    end
    assert_equal 3, findings.size
    findings.each { |finding| assert_includes finding.fix, "add .preload(:last_remark, remarks: :author) where the pages" }
  end

  def test_a_preload_within_a_recursion_is_not_proposed
    finding = only { Node.find(1).tree }
    assert_equal ["DetectAdviceTest::Node#children", 7, nil], [finding.association, finding.count, finding.fix]
    assert_includes finding.fix_refused, "preload it as deep as the tree goes where its first record is loaded"
    assert_equal 3, statements { Node.preload(children: :children).find(1).children.map { |child| child.children.map(&:id) } }
  end

  def test_a_tree_below_several_records_has_no_fix_at_one_line
    finding = only { Node.where(parent_id: 1).map(&:tree) }
    assert_nil finding.fix
    assert_includes finding.fix_refused, "by a method that calls itself: preload it as deep as the tree goes"
  end

  def test_arguments_may_be_written_without_parentheses
    wanted = { on_behalf: false }
    finding = only { World::User.all.each { |user| user.tokens.exists? wanted } }
    assert_nil finding.fix
    work = -> { World::User.all.each { |user| user.tokens.find_by on_behalf: false if wanted } }
    finding = only(&work)
    assert_includes finding.fix, "has_one :chosen_token, -> { where(on_behalf: false) }, "
    assert_predicate Castellan::Doctor.try(finding, &work), :accepted?
  end

  def test_arguments_end_where_their_line_does
    # rubocop:disable-next Style/SingleLineDoEndBlock
    works = [-> { World::User.all.each do |user| user.tokens.first end },
             -> { World::User.all.each do |user| user.tokens.where(on_behalf: false).exists? end }]
    works.each { |work| assert only(&work).fix, only(&work).fix_refused }
  end

  def test_a_text_that_is_computed_for_each_record_is_not_copied_out_of_the_loop
    finding = only { World::User.all.each { |user| user.tokens.find_by secret: "a#{user.class}" } }
    assert_nil finding.fix
  end

  def test_a_condition_that_is_read_from_the_record_is_not_copied_out_of_the_loop
    finding = only { World::User.all.map { |user| user.tokens.where(on_behalf: user.name.nil?).to_a } }
    assert_includes finding.fix_refused, "may differ from record to record"
    finding = only { World::User.all.map { |user| World::Token.where(user_id: user.id, on_behalf: user.name.nil?).to_a } }
    assert_includes finding.fix_refused, "may differ from record to record"
    finding = only { Node.where(parent_id: 1).map(&:children_of_its_author) }
    assert_includes finding.fix_refused, "may differ from record to record"
  end

  def test_a_position_on_the_line_is_no_association
    work = -> { Node.where(parent_id: 1).preload(:children).each { |node| [node.children.size, node.author] } }
    finding = only(&work)
    assert_includes finding.fix, ".preload(:author) where"
    assert_predicate Castellan::Doctor.try(finding, &work), :accepted?
  end

  def test_associations_of_preloaded_records_of_the_same_model_are_preloaded_below_them
    work = -> { Node.where(parent_id: 1).preload(:children).each { |node| node.children.each { |child| child.new_children.to_a } } }
    finding = only(&work)
    assert_equal ["DetectAdviceTest::Node#new_children", 4], [finding.association, finding.count]
    assert_includes finding.fix, "add .preload(children: :new_children) where the nodes are loaded: "
    assert finding.fix.end_with?(" (in place of :children there)"), finding.fix
    assert_predicate Castellan::Doctor.try(finding, &work), :accepted?
  end

  class Reply < World::Base
    self.table_name = "advice_nodes"
    self.inheritance_column = nil
    belongs_to :parent, class_name: "DetectAdviceTest::Reply", optional: true
    %i[replies answers].each { |name| has_many name, class_name: "DetectAdviceTest::Reply", foreign_key: :parent_id, inverse_of: false }
    belongs_to :author, class_name: "ActiveRecordWorld::User", optional: true
  end

  def test_associations_of_records_of_the_same_model_are_preloaded_below_the_association_that_the_line_names
    findings = Castellan::Detect.watch(slow_ms: nil) { Reply.where.not(parent_id: nil).each { |reply| reply.parent.author&.name } }
    findings.each { |finding| assert_includes finding.fix, "add .preload(parent: :author) where the replies are loaded" }
    assert_equal %w[DetectAdviceTest::Reply#parent DetectAdviceTest::Reply#author], findings.map(&:association)
    assert_equal 3, statements { Reply.where.not(parent_id: nil).preload(parent: :author).each { |reply| reply.parent.author&.name } }
  end

  def test_a_preload_is_nested_below_the_nearest_of_several_associations_to_the_same_model
    replies = Reply.where.not(parent_id: [nil, 1])
    findings = Castellan::Detect.watch(slow_ms: nil) { replies.each { |reply| reply.parent.replies.each { |one| one.answers.to_a } } }
    assert_equal %w[answers parent replies], findings.map { |one| one.association[/\w+\z/] }.sort
    findings.each { |one| assert_includes one.fix, "add .preload(parent: { replies: :answers }) where the replies are loaded" }
  end

  class Attached < Holder
    has_one :file, class_name: "DetectAdviceTest::AttachedFile", foreign_key: :record_id
  end

  class AttachedFile < World::Base
    connection.create_table(:attached_files) { |t| [t.integer(:record_id), t.integer(:blob_id)] }
    self.table_name = "attached_files"
    belongs_to :blob, class_name: "ActiveRecordWorld::Token"
    delegate_missing_to :blob # as in Active Storage: a preloader that finds the file loaded asks it for to_ary
  end

  def test_a_nested_preload_is_tried_in_place_of_the_one_that_is_there
    Attached.all.each { |user| AttachedFile.create!(record_id: user.id, blob: World::Token.create!(user_id: user.id)) }
    work = -> { Attached.preload(:file).map { |user| user.file&.blob&.secret } }
    finding = only(&work)
    assert finding.fix.end_with?(" (in place of :file there)"), finding.fix
    trial = Castellan::Doctor.try(finding, &work)
    assert_predicate trial, :accepted?, trial.to_s
  ensure
    World::Token.where(id: AttachedFile.pluck(:blob_id)).delete_all
    AttachedFile.delete_all
  end

  def test_a_calculation_by_groups_for_each_record_names_the_grouping
    finding = only { World::User.all.map { |user| user.tokens.group(:on_behalf).count } }
    assert_equal [nil, "each statement groups its rows: query once, grouped by user_id as well"], [finding.fix, finding.fix_refused]
  end

  def test_subclasses_of_one_table_that_are_loaded_on_a_line_are_not_preloaded_for_each_other
    Node.transaction do
      [*Array.new(2) { Node::Twig }, *Array.new(3) { Node::Bud }].each(&:create!)
      work = lambda do
        nodes = Node::Twig.all.to_a + Node::Bud.all.to_a
        nodes.each { |node| node.new_children.to_a }
      end
      finding = only(&work)
      assert_equal "add .preload(:new_children) where the nodes are loaded: #{finding.parent_location}", finding.fix
      assert_predicate Castellan::Doctor.try(finding, &work), :accepted?
      raise ActiveRecord::Rollback
    end
  end

  def test_a_column_that_the_line_assigns_is_not_a_condition_of_a_scope
    finding = only { Holder.all.each { |holder| World::Token.where(user_id: holder.id, secret: "y").exists? } }
    assert_equal "DetectAdviceTest::Holder#tokens", finding.association
    finding = only { Holder.all.each { |holder| holder.secret_tokens.exists? } }
    assert_equal "DetectAdviceTest::Holder#secret_tokens", finding.association
  end

  def test_a_line_that_reads_by_two_conditions_has_no_fix_for_one_of_them
    tokens = ->(holder) { holder.tokens.find_by(secret: "none") || holder.tokens.find_by(secret: "neither") }
    assert_includes only { Holder.all.each(&tokens) }.fix_refused, "differ in secret"
    counts = ->(holder) { [holder.tokens.where(secret: "x").count, holder.tokens.where(secret: "y").count] }
    assert_includes only { Holder.all.each(&counts) }.fix_refused, "differ in secret"
    of = ->(holder, secret) { World::Token.where(user_id: holder.id, secret: secret) }
    assert_nil only { Holder.all.each { |holder| of.call(holder, "x").count + of.call(holder, "y").count } }.fix
    by_key = ->(id) { World::Token.where(user_id: id, secret: "x").count + World::Token.where(user_id: id, secret: "y").count }
    assert_includes only { Holder.ids.each(&by_key) }.fix_refused, "secret"
  end

  def test_a_line_with_one_condition_has_a_fix_although_another_line_reads_by_another
    finding = only do
      Holder.all.each { |holder| holder.tokens.find_by(secret: "none") }
      Holder.limit(3).each { |holder| holder.tokens.find_by(secret: "other") }
    end
    assert_includes finding.fix, 'has_one :chosen_token, -> { where(secret: "none") }, '
    finding = only do
      Holder.all.each { |holder| holder.tokens.where(secret: "none").count }
      Holder.first.tokens.where(secret: "x").count
    end
    assert_includes finding.fix, '.where(user_id: values).where(secret: "none").group(:user_id).count'
  end

  class Newest < Holder
    has_one :newest_token, -> { order(id: :desc).limit(1) }, class_name: "ActiveRecordWorld::Token", foreign_key: :user_id
  end

  def test_a_has_one_with_a_limit_is_not_proposed
    finding = only { Newest.all.map { |user| user.tokens.order(id: :desc).first } }
    assert_includes finding.fix, "token, -> { order(id: :desc) }, "
  end

  def test_an_association_that_cannot_be_preloaded_is_not_proposed
    leaf = Leaf.one_to_one(:blue_leaf, class: Leaf, key: :parent_id, allow_eager: false) { |leaves| leaves.where(color: "blue").order(:id) }
    finding = only { Leaf.all.each { |one| one.leaves_dataset.where(color: "blue").order(:id).first } }
    assert_includes finding.fix, "declare in DetectAdviceTest::Leaf: one_to_one("
  ensure
    Leaf.association_reflections.delete(leaf[:name])
  end

  def test_a_name_that_is_taken_is_not_proposed
    World::User.class_eval { def last_token = tokens.order(:id).last }
    finding = only { World::User.all.map(&:last_token) }
    assert_includes finding.fix, "has_one :preloaded_last_token, "
  ensure
    World::User.class_eval { remove_method :last_token }
  end

  def test_a_loop_of_inserts_becomes_one
    World::Base.transaction do
      assert_includes only { 3.times { |number| World::Tag.create!(name: "m #{number}") } }.fix, "Tag.insert_all!(rows)"
      raise ActiveRecord::Rollback
    end
  end

  def test_a_look_up_by_a_key_that_a_record_holds_is_one_query
    finding = only { World::Post.all.map { |post| World::User.find(post.user_id) } }
    assert_includes finding.fix, "query once: ActiveRecordWorld::User.where(id: values).index_by(&:id)"
  end

  def test_a_finding_has_the_application_frames_of_its_statements
    tally = Castellan::Detect::Tally.new
    Castellan::Instrument.record(tally) { bylines }
    finding = Castellan::Detect::Verdict.new(tally).findings.first
    assert_equal "#{finding.location}:in `byline'", finding.stack[0]
    assert_match(/:in `bylines'\z/, finding.stack[1])
  end

  def test_children_of_many_are_preloaded_where_they_are_on_one_line
    assert_includes only { Node.all.map { |node| node.children.to_a } }.fix, "add .preload(:children) where"
  end

  def test_children_of_the_children_of_one_are_preloaded_where_they_are_on_one_line
    families = -> { Node.find(1).children.map { |child| child.children.map(&:id) } }
    finding = only(&families)
    assert_equal "add .preload(:children) where the nodes are loaded: #{finding.location}", finding.fix
    assert_equal 3, statements { Node.find(1).children.preload(:children).map { |child| child.children.map(&:id) } }
    assert_predicate Castellan::Doctor.try(finding, &families), :accepted?
  end

  def test_an_insert_from_a_select_is_not_written_as_rows
    World::Base.transaction do
      finding = only do
        3.times { |id| World::Base.connection.execute("INSERT INTO tags (name) SELECT name FROM tags WHERE id = #{id}") }
      end
      assert_equal [:write_loop, 3, nil], [finding.kind, finding.count, finding.fix]
      assert_includes finding.fix_refused, "let one SELECT choose them all"
      raise ActiveRecord::Rollback
    end
  end

  def test_membership_of_one_record_is_queried_for_that_record
    wanted = World::Post.first
    finding = only { World::User.all.map { |user| user.posts.exists?(wanted.id) } }
    code = "ActiveRecordWorld::Post.where(user_id: values).where(id: wanted.id).distinct.pluck(:user_id)"
    assert_equal "collect the values before the loop around #{finding.location} and query once: #{code}", finding.fix
    assert_equal [wanted.user_id], World::Post.where(user_id: World::User.ids).where(id: wanted.id).distinct.pluck(:user_id)
    finding = only { World::User.all.map { |user| user.posts.exists?(1) } }
    assert_includes finding.fix, "Post.where(user_id: values).where(id: 1).distinct.pluck(:user_id)"
    finding = only { World::User.all.map { |user| user.comments.exists?(wanted.id) } }
    assert_nil finding.fix
  end

  def test_only_a_hash_and_a_list_are_conditions_of_exists
    wanted = World::Post.first.id
    params = { id: wanted }
    finding = only { World::User.all.map { |user| user.posts.exists?(wanted) } }
    assert_includes finding.fix, "Post.where(user_id: values).where(id: wanted).distinct"
    fix = only { World::User.all.map { |user| user.posts.exists?(params[:id]) } }.fix
    assert_includes fix, ".where(id: params[:id]).distinct"
    assert_includes only { World::User.all.map { |user| user.posts.exists?(wanted.to_i) } }.fix, ".where(id: wanted.to_i).distinct"
    assert_includes only { World::User.all.map { |user| user.posts.exists?("5") } }.fix, '.where(id: "5").distinct'
    assert_includes only { World::User.all.map { |user| user.posts.exists?(["id > ?", 5]) } }.fix, '.where(["id > ?", 5]).distinct'
    assert_includes only { World::User.all.map { |user| user.posts.exists?({ id: 5 }) } }.fix, ".where({ id: 5 }).distinct"
  end

  def test_a_condition_that_is_not_on_the_line_has_no_fix
    comments = World::Comment.where(author_id: World::User.last.id)
    finding = only { World::Post.all.map { |post| comments.exists?(post_id: post.id) } }
    assert_nil finding.fix
  end

  def test_the_scope_of_an_association_is_kept_in_a_query_for_all
    finding = only { Node.all.map { |node| node.new_children.count } }
    assert_nil finding.fix
    assert_nil only { Node.all.map { |node| node.new_children.average(:id) } }.fix
  end

  def test_the_block_of_an_association_of_sequel_is_a_condition_as_well
    assert_nil only { Leaf.all.map { |leaf| leaf.red_leaves_dataset.count } }.fix
    finding = only { Leaf.all.map { |leaf| Leaf.where(parent_id: leaf.id).all } }
    assert_equal "DetectAdviceTest::Leaf#leaves", finding.association
    refute_includes finding.fix, "ambiguous"
  end

  def test_one_record_of_each_by_its_key_has_no_fix
    assert_includes only { Leaf.all.map { |leaf| leaf.leaves_dataset.with_pk(2) } }.fix_refused, "does not contain all conditions"
  end

  def test_the_version_of_a_list_is_read_from_what_is_loaded
    finding = only { Node.all.map { |node| node.children.cache_key_with_version } }
    assert_equal "add .preload(:children) where the nodes are loaded: #{finding.parent_location}", finding.fix
    assert_equal 2, statements { Node.preload(:children).map { |node| node.children.cache_key_with_version } }
    versions = [Node.all, Node.preload(:children)].map { |nodes| nodes.map { |node| node.children.cache_key_with_version } }
    assert_equal(*versions)
  end

  def test_the_model_that_the_line_names_is_chosen_among_those_of_a_table
    assert_includes only { [1, 2, 3].each { |id| SequelWorld::User.first(id: id) } }.fix, "User.where(id: values)"
    assert_includes only { [1, 2, 3].each { |id| SequelWorld::TacticalUser.first(id: id) } }.fix, "TacticalUser.where(id: values)"
    finding = only { [1, 2, 3].each { |id| SequelWorld::User.first(id: id) } }
    assert_match(/once: SequelWorld::User\./, finding.fix)
  end

  def test_a_limit_of_the_parents_is_not_one_of_the_association
    assert_includes only { World::User.limit(4).map { |user| user.post_ids } }.fix, "add .preload(:posts) where"
  end

  def test_conditions_that_are_the_same_for_all_are_kept
    author = World::User.last.id
    finding = only { World::Post.limit(4).select { |post| post.comments.exists?(author_id: author) } }
    assert_includes finding.fix, "World::Comment.where(post_id: values).where(author_id: author).distinct.pluck(:post_id)"
    finding = only { World::Post.limit(4).select { |post| post.comments.exists?(author_id: post.user_id) } }
    assert_includes finding.fix_refused, "differ from record to record"
  end

  def test_the_condition_that_varies_is_queried_once
    author = World::User.last.id
    finding = only { [1, 2, 3].map { |post| World::Comment.find_by(author_id: author, post_id: post) } }
    assert_includes finding.fix, "World::Comment.where(post_id: values).where(author_id: author)"
    finding = only { [[1, 2], [2, 3], [3, 4]].map { |user, post| World::Comment.find_by(author_id: user, post_id: post) } }
    assert_includes finding.fix_refused, "does not show which changes"
  end

  def test_both_lists_that_read_the_association_are_named
    finding = only do
      World::Post.limit(3).each(&:user)
      World::Post.offset(3).limit(3).each(&:user)
    end
    assert_includes finding.fix, "#{finding.parent_location} and test/detect/advice_test.rb:#{__LINE__ - 2}"
  end

  def test_records_without_a_line_have_no_fix_without_a_line
    users = World::User.all.each_entry
    finding = only { 3.times { users.next.posts.to_a } }
    assert_includes finding.fix_refused, "no line of the application was running"
  end

  def test_inserts_that_the_database_rejected_have_no_automatic_fix
    insert = lambda do |id|
      World::Tag.transaction(requires_new: true) { World::Tag.create!(id: id, name: "advice") }
    rescue ActiveRecord::RecordNotUnique
      nil
    end
    World::Base.transaction do
      assert_includes only { [9_001, 9_002, 9_001, 9_003].each(&insert) }.fix_refused, "several rows"
      raise ActiveRecord::Rollback
    end
  end

  def test_inserts_with_a_conflict_clause_have_no_automatic_fix
    World::Base.transaction do
      %i[upsert insert].each do |method|
        finding = only { 3.times { |number| World::Tag.public_send(method, { id: number + 1, name: "up" }) } }
        assert_includes finding.fix_refused, "several rows"
      end
      raise ActiveRecord::Rollback
    end
    SequelWorld::DB.transaction(rollback: :always) do
      tags = SequelWorld::DB[:tags].insert_conflict(target: :id, update: { name: "up" })
      assert_nil only { 3.times { |number| tags.insert(id: number + 1, name: "in") } }.fix
    end
  end

  # As PostgreSQL is asked. SQLite is sent the same statement again.
  def test_records_that_are_found_and_then_locked_are_reported_if_the_lock_is_a_query
    tally = Castellan::Detect::Tally.new
    sql = "SELECT * FROM tags WHERE id = $1 LIMIT $2"
    [1, 2].product(["", " FOR UPDATE"]) do |id, lock|
      tally.query("#{sql}#{lock}", "#{World::Tag} Load", 0, 1, false, 1, [id, 1]) # as Tag.find(id).lock! does
    end
    assert_equal [[:n_plus_one, 2], [:n_plus_one, 2]], Castellan::Detect::Verdict.new(tally).findings.map { |one| [one.kind, one.count] }
  end

  def test_a_lock_per_row_is_kept
    finding = only { World::Base.transaction { [1, 2, 3].each { |id| World::Tag.lock.find(id) } } }
    assert_includes finding.fix_refused, "each row is locked by itself"
    finding = only { World::Base.transaction { World::Tag.limit(3).each { |tag| tag.with_lock { tag.update!(name: "n #{tag.id}") } } } }
    assert_equal :write_loop, finding.kind
    finding = only { SequelWorld::DB.transaction { [1, 2, 3].each { |id| SequelWorld::Tag.for_update.first(id: id) } } }
    assert_includes finding.fix_refused, "each row is locked by itself"
  end

  private

  def bylines = World::Post.all.map { |post| byline(post) }
  def byline(post) = post.user.name

  def only(&block)
    findings = Castellan::Detect.watch(slow_ms: nil, &block)
    assert_equal 1, findings.size, findings.join("\n")
    findings.first
  end

  def statements(&block)
    counter = Castellan::Instrument::Counter.new
    Castellan::Instrument.record(counter, &block)
    counter.queries
  end
end
