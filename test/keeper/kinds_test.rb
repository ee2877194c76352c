# frozen_string_literal: true

require "test_helper"
require "document/library"

# What `cache` declares besides :exact: stale documents, and versions that are notified of.
class KeeperKindsTest < Minitest::Test
  def setup
    needs :postgres
    library.fill
    @versions = Castellan::Versions::NotifiedVersions.new(library.models::Base)
    @versions.install(Library::TABLES)
    @keeper = Castellan::Keeper.new(store: Castellan::Store::MemoryStore.new, versions: @versions)
  end

  def teardown
    @versions&.uninstall(Library::TABLES)
    @versions&.close
  end

  def test_a_stale_document_has_the_tag_of_its_own_version
    resource = resource(:StaleTagResource) { cache :exact, stale_if_error: 60 }
    before = document(resource).then { |document| [document.to_json, document.etag] }
    library.run("UPDATE tags SET name = name || '!'")
    failing = document(resource)
    failing.rendering.stub(:write, -> { raise IOError, "down" }) { assert_equal before, [failing.to_json, failing.etag] }
    after = document(resource)
    assert_includes after.to_json, "ruby!"
    refute_equal before.last, after.etag
  end

  def test_nothing_stale_is_served_without_a_trigger_or_in_a_transaction_that_has_written
    resource = resource(:UnknownVersionResource) { cache :exact, stale_if_error: 60 }
    document(resource).to_json
    library.transaction do
      library.run("UPDATE tags SET name = 'open'")
      assert_includes document(resource).to_json, "open"
    end
    @versions.uninstall(%w[tags])
    library.run("UPDATE tags SET name = 'unnoticed'")
    assert_includes document(resource).to_json, "unnoticed"
  end

  def test_the_seconds_since_a_change_go_on_when_the_database_goes_down
    resource = resource(:ReplacedResource) { cache :exact, stale_if_error: 60 }
    before = document(resource).to_json
    library.run("UPDATE tags SET name = name || '?'")
    failing = document(resource)
    failing.rendering.stub(:write, -> { raise IOError, "down" }) { assert_equal before, failing.to_json }
    @versions.exact.stub(:current, ->(_) { raise ActiveRecord::ConnectionNotEstablished }) do
      assert_equal before, document(resource).to_json
      now_ms = Castellan::Clock.wall_ms + 61_000
      Castellan::Clock.stub(:wall_ms, -> { now_ms }) do
        assert_raises(ActiveRecord::ConnectionNotEstablished) { document(resource).to_json }
      end
    end
  end

  # "database x is not currently accepting connections"
  def test_a_closed_database_is_an_outage
    resource = resource(:ClosedDatabaseResource) { cache :exact, stale_if_error: 60 }
    before = document(resource).to_json
    @versions.exact.stub(:current, ->(_, &failed) { failed.call(ActiveRecord::NoDatabaseError.new) && nil }) do
      assert_equal before, document(resource).to_json
    end
  end

  def test_an_exact_document_is_never_stale
    resource = resource(:ExactTagResource) { cache :exact }
    document(resource).to_json
    library.run("UPDATE tags SET name = name || '!'")
    failing = document(resource)
    failing.rendering.stub(:write, -> { raise IOError, "down" }) { assert_raises(IOError) { failing.to_json } }
  end

  def test_notified_documents_ask_for_no_version_and_exact_ones_do
    notified = resource(:NotifiedTagResource) { cache :notified }
    exact = resource(:AskingTagResource) { cache :exact }
    eventually { @versions.listening? }
    [notified, exact].each { |one| 2.times { document(one).to_json } }
    asked = 0
    current = @versions.exact.method(:current)
    @versions.exact.stub(:current, ->(dependencies) { (asked += 1) && current.call(dependencies) }) do
      document(notified).to_json
      assert_equal 0, asked
      document(exact).to_json
      assert_equal 1, asked
    end
  end

  def test_a_notified_document_is_written_anew_after_a_write
    resource = resource(:RewrittenTagResource) { cache :notified }
    eventually { @versions.listening? }
    document(resource).to_json
    library.run("UPDATE tags SET name = 'noticed'")
    eventually { document(resource).to_json.include?("noticed") }
  end

  def test_wrong_declarations_are_refused
    { "cache :notify is not known" => -> { resource(:WrongTagResource) { cache :notify } },
      "write seconds above 0" => -> { resource(:ZeroTagResource) { cache :exact, stale_if_error: 0 } },
      "Infinity: write seconds above 0" => -> { resource(:LongTagResource) { cache :exact, expires_in: 1 / 0.0 } } }.each do |text, mistake|
      assert_includes assert_raises(Castellan::DeclarationError, &mistake).message, text
    end
  end

  private

  def library = Library.active_record(:postgres)
  def document(resource) = resource.document(keeper: @keeper)

  def resource(name, &body)
    tag = library.models::Tag
    resource = Class.new(Castellan::Resource) do
      model tag
      type "tags"
      attributes :name
      class_eval(&body)
    end
    library.models.const_set(name, resource)
  end
end
