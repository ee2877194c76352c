# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "castellan/keeper"

# Two processes of two deployments share a store: the second one never serves what the first one's code wrote.
class RevisionTest < Minitest::Test
  PROGRAM = {
    "posts.rb" => <<~RUBY,
      require "active_record"
      require "castellan"
      ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: "posts.sqlite3")
      require_relative "post"
      require_relative "helper"
      require_relative "post_resource"
      versions = Castellan::Versions::ExactVersions.new(ActiveRecord::Base)
      unless Post.table_exists?
        ActiveRecord::Schema.verbose = false
        ActiveRecord::Schema.define { create_table(:posts) { |t| t.string(:title); t.integer(:status) } }
        Post.connection.execute("INSERT INTO posts (title, status) VALUES ('One', 0)")
        versions.install(%w[posts])
      end
      Castellan.keep(store: Castellan::Store::DirectoryStore.new("store"), versions: versions)
      PostResource.render
      reads = 0
      ActiveSupport::Notifications.subscribe("sql.active_record") { |*, event| reads += 1 if event[:sql].include?("posts") }
      puts PostResource.render[/"attributes":({.*?})/, 1], PostResource.document.etag, reads
    RUBY
    "post.rb" => "class Post < ActiveRecord::Base; enum :status, { draft: 0 }; end\n",
    "helper.rb" => "module Helper; def self.loud(text) = text.upcase; end\n",
    "post_resource.rb" => <<~RUBY
      class PostResource < Castellan::Resource
        model Post
        attributes :status
        attribute(:loud, columns: [:title], pure: true) { |row| Helper.loud(row.title) }
        cache :exact
      end
    RUBY
  }.freeze

  def test_equal_code_shares_cached_documents
    in_application { assert_equal 1, Array.new(2) { run_program }.uniq.size }
  end

  def test_a_renamed_label_of_an_enum_is_served_by_the_next_process
    assert_other("post.rb", "draft: 0", "sketch: 0") { |before, after|
      assert_equal ['{"status":"draft","loud":"ONE"}', '{"status":"sketch","loud":"ONE"}'], [before, after]
    }
  end

  def test_an_edited_helper_is_served_by_the_next_process
    assert_other("helper.rb", "text.upcase", "text.downcase") { |_, after| assert_equal '{"status":"draft","loud":"one"}', after }
  end

  def test_an_edited_template_is_served_by_the_next_process
    in_application do
      before = with_template("<b>")
      assert_equal before, with_template("<b>")
      refute_equal before[1], with_template("<i>")[1]
    end
  end

  # Of components, engines and packs in the application's directory.
  def test_a_template_of_an_autoload_path_and_views_beside_it_are_part_of_the_source
    paths = 'require "active_support/dependencies"; ' \
            'ActiveSupport::Dependencies.autoload_paths = [File.expand_path("packs/blog/app/models")]; '
    %w[packs/blog/app/models/card.html.erb packs/blog/app/views/blog/show.html.erb].each do |file|
      in_application do
        write_files(@directory, { "packs/blog/app/models/blog.rb" => "class Blog; end" })
        before, same, after = %w[<b> <b> <i>].map { |text| write_files(@directory, { file => text }) && run_program({}, paths) }
        assert_equal before, same
        refute_equal before[1], after[1], file
      end
    end
  end

  def test_a_translation_is_part_of_the_source_wherever_it_is
    in_application do
      before, same, after = %w[Hi Hi Hello].map do |text|
        write_files(@directory, { "packs/blog/locales/en.yml" => "en: { hello: #{text} }" })
        run_program({}, %(require "i18n"; I18n.load_path << "packs/blog/locales/en.yml"; ))
      end
      assert_equal before, same
      refute_equal before[1], after[1]
    end
  end

  # A block of `Castellan.cache.fetch` may be there. Rack evaluates the file, so it is not among the loaded ones.
  def test_an_edited_rackup_file_is_a_release_of_its_own
    in_application do
      before, same, after = %w[one one two].map { |text| File.write("config.ru", "run ->(_) { #{text} }") && run_program }
      assert_equal before, same
      refute_equal before[1], after[1]
    end
  end

  # The old release casts a column by the type that it had when that process started, after the migration too.
  def test_a_migration_is_a_release_of_its_own
    { "integer" => "schema.rb", "text" => "structure.sql", "date" => "animals_schema.rb" }.each do |type, file|
      in_application do
        before = with_schema(file, "string")
        assert_equal before, with_schema(file, "string")
        refute_equal before[1], with_schema(file, type)[1]
      end
    end
  end

  # A web server started by bin/rails and workers started by another program share documents.
  def test_the_program_that_starts_rails_is_not_part_of_the_source
    in_application do
      write_files(@directory, { "bin/rails" => "1", "bin/jobs" => "2", "app/models/tag.rb" => "class Tag; end" })
      paths = %(require "active_support/dependencies"; ActiveSupport::Dependencies.autoload_paths = [File.expand_path("app/models")])
      assert_equal 1, %w[bin/rails bin/jobs].map { |program| run_program({}, "$PROGRAM_NAME = #{program.dump}; #{paths}; ") }.uniq.size
    end
  end

  def test_a_revision_of_the_deployment_replaces_the_digest_of_the_source
    { "KAMAL_VERSION" => %w[one two], "HEROKU_SLUG_COMMIT" => %w[a b] }.each do |name, (one, two)|
      in_application do
        first = run_program(name => one)
        assert_equal first, run_program(name => one)
        refute_equal first[1], run_program(name => two)[1]
        edit("helper.rb", "text.upcase", "text.upcase.to_s")
        assert_equal first, run_program(name => one)
      end
    end
  end

  def test_a_file_named_revision_comes_before_the_environment
    in_application do
      File.write("REVISION", "4f2a91c\n")
      first = run_program("KAMAL_VERSION" => "one")
      assert_equal first, run_program("KAMAL_VERSION" => "two")
      File.write("REVISION", "4f2a91d\n")
      refute_equal first[1], run_program("KAMAL_VERSION" => "one")[1]
    end
  end

  def test_a_given_revision_has_precedence_and_must_be_a_string
    assert_equal "mine", Castellan::Keeper::Revision.new("mine").to_s
    Castellan.revision = -> { "configured" }
    assert_equal "configured", Castellan::Keeper::Revision.new.to_s
    Castellan.revision = -> { 12 }
    error = assert_raises(Castellan::ConfigurationError) { Castellan::Keeper::Revision.new }
    assert_equal "Castellan.revision, in Rails config.castellan.revision, must be a String or nil, got 12; " \
                 "write for example config.castellan.revision = ENV[\"GIT_COMMIT\"]", error.message
  ensure
    Castellan.revision = nil
  end

  def test_a_revision_is_checked_when_it_is_set
    { 12 => "12", "" => '""', :main => ":main" }.each do |wrong, got|
      error = assert_raises(Castellan::ConfigurationError) { Castellan.revision = wrong }
      assert_equal "Castellan.revision must be a String that is not empty, callable or nil, got #{got}; " \
                   "write for example Castellan.revision = ENV[\"GIT_COMMIT\"]", error.message
      error = assert_raises(Castellan::ConfigurationError) { Castellan::Keeper::Revision.new(wrong) }
      assert_equal "Castellan.keep revision: must be a String that is not empty, got #{got}; " \
                   "write for example revision: ENV[\"GIT_COMMIT\"]", error.message
    end
    assert_nil Castellan.revision
  end

  def test_code_that_was_reloaded_serves_nothing_of_before
    revision = Castellan::Keeper::Revision.new("mine")
    before = revision.to_s
    reloaded = Array.new(2) { revision.renew && revision.to_s }
    assert_equal 3, [before, *reloaded].uniq.size
  end

  private

  def in_application
    Dir.mktmpdir do |directory|
      write_files(directory, PROGRAM)
      @directory = directory
      Dir.chdir(directory) { yield }
    end
  end

  # @return [Array<String>] attributes, entity tag, and how many statements read the table the second time
  def run_program(environment = {}, before = "")
    names = Castellan::Keeper::Revision::VARIABLES.to_h { |name| [name, nil] }
    run_rails(%(#{before}require "./posts"), env: { **names, "CASTELLAN" => nil, **environment }, chdir: @directory).lines(chomp: true)
  end

  def with_template(text)
    FileUtils.mkdir_p("app/views/posts")
    File.write("app/views/posts/show.json.jbuilder", text)
    run_program
  end

  def with_schema(file, text)
    FileUtils.mkdir_p("db")
    File.write("db/#{file}", text)
    run_program
  end

  def edit(file, from, to)
    File.write(file, PROGRAM.fetch(file).sub(from, to))
  end

  def assert_other(file, from, to)
    in_application do
      before = run_program
      edit(file, from, to)
      after = run_program
      refute_equal before[1], after[1]
      yield before[0], after[0]
      assert_equal %w[0 0], [before[2], after[2]], "each was kept"
    end
  end
end
