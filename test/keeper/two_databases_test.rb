# frozen_string_literal: true

require "test_helper"
require "active_record"
require "sequel"
require "castellan/keeper"

# Two databases may have tables of one name; a version is that of one of them.
class TwoDatabasesTest < Minitest::Test
  SCHEMA = ["CREATE TABLE notes (id integer PRIMARY KEY, text varchar(20), topic_id integer)",
            "CREATE TABLE topics (id integer PRIMARY KEY, name varchar(20))",
            "INSERT INTO topics VALUES (1, 'old')", "INSERT INTO notes VALUES (1, 'old', 1)"].freeze

  class Versioned < ActiveRecord::Base
    self.abstract_class = true
  end

  class Apart < ActiveRecord::Base
    self.abstract_class = true
  end

  class Topic < Apart
    self.table_name = "topics"
  end

  class Note < Apart
    self.table_name = "notes"
  end

  class Mixed < Versioned
    self.table_name = "notes"
    belongs_to :topic, class_name: "TwoDatabasesTest::Topic"
  end

  class NoteResource < Castellan::Resource
    model Note
    attributes :text
    cache :exact
  end

  class TopicResource < Castellan::Resource
    model Topic
    attributes :name
  end

  class MixedResource < Castellan::Resource
    model Mixed
    attributes :text
    belongs_to :topic, resource: "TwoDatabasesTest::TopicResource"
    cache :exact
  end

  def setup
    super
    [Versioned, Apart].each do |base|
      base.establish_connection(adapter: "sqlite3", database: ":memory:")
      SCHEMA.each { |sql| base.connection.execute(sql) }
    end
    @versions = Castellan::Versions::ExactVersions.new(Versioned)
    @versions.install(%w[notes topics])
    @keeper = keeper(@versions)
  end

  def teardown
    [Versioned, Apart].each(&:remove_connection)
    super
  end

  def test_a_document_of_another_database_is_never_stale
    assert_fresh(NoteResource) { Apart.connection.execute("UPDATE notes SET text = 'new'") }
  end

  def test_a_document_with_records_of_another_database_is_never_stale
    assert_fresh(MixedResource, include: "topic") { Apart.connection.execute("UPDATE topics SET name = 'new'") }
  end

  # Many applications switch with their own class, which leaves ActiveRecord::Base where it is.
  SHARDS = <<~RUBY
    require "active_record"
    require "castellan"
    files = { primary: ARGV[0], second: ARGV[1] }
    environment = ActiveRecord::ConnectionHandling::DEFAULT_ENV.call.to_s
    ActiveRecord::Base.configurations = { environment => files.transform_values { |file| { adapter: "sqlite3", database: file } } }
    class ApplicationRecord < ActiveRecord::Base
      primary_abstract_class
      connects_to shards: { default: { writing: :primary }, two: { writing: :second } }
    end
    class Post < ApplicationRecord; end
    source = ActiveRecord::Base
    versions = Castellan::Versions::ExactVersions.new(source)
    within = ->(on, shard, &block) { on.connected_to(shard: shard, role: :writing, &block) }
    %i[default two].each do |shard|
      within.call(source, shard) do
        Post.connection.execute("CREATE TABLE posts (id integer PRIMARY KEY, title text)")
        versions.install(%w[posts])
        Post.create!(title: shard)
      end
    end
    Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: versions)
    found = [source, ApplicationRecord].product(%i[default two], [Post, "posts"]).map do |on, shard, table|
      within.call(on, shard) { Castellan.cache.fetch("titles", depends_on: table) { Post.pluck(:title).join } }
    end
    puts found.join(" ")
  RUBY

  def test_shards_of_the_applications_own_class_do_not_share_bytes
    Dir.mktmpdir do |directory|
      files = %w[one two].map { |name| File.join(directory, name) }
      assert_equal "default default two two default default two two\n", run_ruby("-w", "-e", SHARDS, *files)
    end
  end

  def test_explain_names_the_database_that_has_no_versions
    assert_includes NoteResource.document(keeper: @keeper).explain, "kept: not now: notes is in another database"
    assert_includes MixedResource.document(keeper: @keeper, include: "topic").explain, "topics is in another database than notes"
  end

  def test_a_document_of_another_database_of_sequel_is_never_stale
    versioned, apart = Array.new(2) { Sequel.sqlite.tap { |database| SCHEMA.each { |sql| database.run(sql) } } }
    versions = Castellan::Versions::ExactVersions.new(versioned)
    versions.install(%w[notes topics])
    @keeper = keeper(versions)
    resource = self.class.const_set(:DatasetResource, Class.new(Castellan::Resource))
    resource.class_exec do
      model apart[:notes]
      type "notes"
      attributes :text
      cache :exact
    end
    assert_fresh(resource) { apart.run("UPDATE notes SET text = 'new'") }
  ensure
    self.class.send(:remove_const, :DatasetResource)
    forget(versioned)
    forget(apart)
  end

  private

  def keeper(versions) = Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: versions)

  def assert_fresh(resource, **options)
    assert_includes resource.render(keeper: @keeper, **options), "old"
    yield
    expected = resource.render(keeper: nil, **options)
    assert_includes expected, "new"
    assert_equal expected, resource.render(keeper: @keeper, **options)
  end
end
