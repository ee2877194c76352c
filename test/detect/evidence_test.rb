# frozen_string_literal: true

require_relative "active_record_world"
require "castellan/instrument/threads"
require_relative "sequel_world"

class DetectEvidenceTest < Minitest::Test
  World = ActiveRecordWorld

  def setup
    @evidence = Castellan::Detect::Evidence.new(requests: 3)
  end

  def teardown
    refute_predicate Castellan::Instrument::EagerInstrument, :attached?
    super
  end

  def test_an_unused_eager_load_is_a_finding_after_enough_requests
    2.times { look { index } }
    assert_empty @evidence.findings
    look { index }
    finding = only
    assert_equal [:unused_eager_load, 3, 5], finding.to_h.values_at(:kind, :count, :parent_count)
    assert_match(/\Aunused_eager_load: 3 requests at /, finding.to_s)
    assert_equal "ActiveRecordWorld::User#posts", finding.association
    assert_equal "test/detect/evidence_test.rb:#{method(:index).source_location.last}", finding.location
    assert_equal "take :posts out of what is loaded with the users at #{finding.location}: no code read it in 3 requests", finding.fix
  end

  def test_one_request_that_reads_the_association_prevents_the_finding
    3.times { look { index } }
    look { index.first.posts.map(&:id) }
    assert_empty @evidence.findings
    3.times { look { index } }
    assert_empty @evidence.findings
  end

  def test_every_way_to_read_an_association_counts
    3.times do
      look { World::User.preload(:employee).each(&:employee) }
      look { World::Post.preload(:user).map(&:user) }
      look { World::User.preload(:posts).map { |user| user.posts.first } }
      look { World::User.preload(:tokens).map { |user| user.tokens.include?(nil) } }
      look { World::User.preload(posts: :comments).flat_map { |user| user.posts.flat_map { |post| post.comments.to_a } } }
      look { World::User.preload(:comments).map { |user| user.comments.map(&:id) } }
      look { World::Note.preload(:owner).map(&:owner) }
    end
    assert_empty @evidence.findings
  end

  def test_records_taken_out_of_an_association_count_as_read
    3.times do
      look { World::User.preload(:employee).map { |user| user.association(:employee).target } }
      look { World::Post.preload(:user).map { |post| post.association(:user).load_target } }
      look { World::User.preload(:posts).map { |user| user.association(:posts).target } }
      look { World::User.preload(:tokens).map { |user| user.tokens.target } }
    end
    assert_empty @evidence.findings
    3.times { look { World::Post.preload(:comments).map { |post| post.association(:comments).loaded? } } }
    assert_equal "ActiveRecordWorld::Post#comments", only.association
  end

  def test_an_association_that_a_join_loads_is_not_judged
    3.times do
      look { World::User.eager_load(:posts).to_a }
      look { SequelWorld::User.eager_graph(:posts).all }
    end
    assert_empty @evidence.findings
  end

  def test_counting_the_records_counts_as_reading_the_association
    3.times { look { World::User.preload(:posts).map { |user| user.posts.size } } }
    assert_empty @evidence.findings
  end

  def test_an_association_with_repeated_queries_is_not_reported
    look { World::User.all.to_a.each { |user| user.posts.to_a } }
    3.times { look { index } }
    assert_empty @evidence.findings
  end

  def test_reading_ids_counts_as_reading_the_association
    3.times { look { World::User.preload(:posts).map(&:post_ids) } }
    assert_empty @evidence.findings
  end

  def test_an_unused_load_is_reported_until_a_request_reads_it
    3.times { look { index } }
    finding = only
    assert @evidence.holds?(finding)
    look { index.first.posts.to_a }
    refute @evidence.holds?(finding)
  end

  def test_the_most_recent_loads_are_kept
    most = Castellan::Detect::Evidence::MOST
    here = Castellan::CallSite.current & ~Castellan::CallSite::LINE_MASK
    (most + 1).times { |line| 3.times { @evidence.observe([[here + line, World::User, :posts, 5, false]]) } }
    assert_equal most, @evidence.findings.size
    refute(@evidence.findings.any? { |finding| finding.location.end_with?(":0") })
  end

  def test_one_record_is_no_eager_load
    3.times { look { World::User.preload(:posts).limit(1).to_a } }
    assert_empty @evidence.findings
  end

  def test_unused_eager_loads_of_sequel_are_found
    3.times { look { SequelWorld::User.eager(:posts, :employee).all.each(&:employee) } }
    assert_equal [:unused_eager_load, "SequelWorld::User#posts"], only.to_h.values_at(:kind, :association)
  end

  def test_reading_the_associations_hash_of_sequel_counts
    3.times { look { SequelWorld::User.eager(:posts).all.map { |user| user.associations[:posts].size } } }
    assert_empty @evidence.findings
    3.times { look { SequelWorld::Post.eager(:user, :comments).all.map(&:id) } }
    assert_equal %w[Post#comments Post#user], @evidence.findings.map { |finding| finding.association[/\w+#\w+/] }.sort
  end

  # In its own process, because Sequel's location is looked up once.
  EXTENDED = <<~RUBY
    require "sequel"
    require "castellan/detect"
    require "castellan/instrument/threads"
    Sequel::Model.singleton_class.prepend(Module.new { def plugin(*, **, &) = super })
    Sequel.sqlite.create_table(:things) { primary_key :id }
    class Thing < Sequel::Model(:things)
      one_to_many :parts, class: self, key: :id
    end
    2.times { Thing.create }
    evidence = Castellan::Detect::Evidence.new(requests: 2)
    2.times { evidence.watch { Thing.eager(:parts).all.map { |thing| thing.associations[:parts].size } } }
    print evidence.findings.size
    2.times { evidence.watch { Thing.eager(:parts).all.map { |thing| Thread.new(&thing.method(:associations)).value } } }
    print evidence.findings.size
    other = Castellan::Detect::Evidence.new(requests: 2)
    2.times { other.watch { Thing.eager(:parts).all } }
    print other.findings.size
  RUBY

  def test_evidence_works_with_extended_sequel_models
    assert_equal "001", run_ruby("-e", EXTENDED)
  end

  def test_requests_of_several_threads_are_added_up
    Array.new(3) { Thread.new { look { World::Base.connection_pool.with_connection { index } } } }.each(&:join)
    assert_equal [:unused_eager_load, 3], [only.kind, only.count]
  end

  def test_one_request_proves_nothing
    error = assert_raises(Castellan::ConfigurationError) { Castellan::Detect::Evidence.new(requests: 1) }
    assert_includes error.message, "2 or more"
  end

  def test_a_share_of_many_requests_is_sampled
    looked = [0, 0.1, 1].to_h do |share|
      sampled = Castellan::Detect::Evidence.new(share)
      [share, Array.new(2_000) { sampled.begin&.tap { |use| sampled.finish(use, Castellan::Detect::Tally.new) } }.compact.size]
    end
    assert_equal [0, 2_000], looked.values_at(0, 1)
    assert_in_delta 200, looked[0.1], 90 # six times as far as it scatters
    assert(Array.new(20) { Castellan::Detect::Evidence.new([1e-17, Float::MIN, 1e-10].sample).begin }.none?)
  end

  private

  def index = World::User.preload(:posts).to_a

  def look(&work) = @evidence.watch(&work)

  def only
    assert_equal 1, @evidence.findings.size, @evidence.findings.join("\n")
    @evidence.findings.first
  end
end
