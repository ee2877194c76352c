# frozen_string_literal: true

require "test_helper"
require "active_record"
require "rack/mock_request"
require "tmpdir"

# Negotiation, validators and the entity tag allocate few objects beside the document.
class RequestObjectsTest < Minitest::Test
  MOST = 60

  class Record < ActiveRecord::Base
    self.abstract_class = true
  end

  class Letter < Record; end

  class LetterResource < Castellan::Resource
    model Letter
    type "letters"
    attributes :title, :number
    sort :number, default: "number"
    page size: 20
  end

  def setup
    @directory = Dir.mktmpdir # SQLite writes more files beside the database
    Record.establish_connection(adapter: "sqlite3", database: File.join(@directory, "objects.sqlite3"))
    Record.connection.create_table(:letters) { |table| table.string(:title) && table.integer(:number) }
    Letter.table_name = "letters"
    Letter.insert_all!((1..30).map { |number| { title: "Letter #{number}", number: number } })
    @app = Castellan.app do
      authenticate { |env| env["HTTP_AUTHORIZATION"] }
      resource LetterResource
    end
  end

  def teardown
    Record.remove_connection
    FileUtils.rm_rf(@directory)
  end

  def test_a_page_allocates_few_objects_beside_its_document
    query = Castellan::Plan::Request.parse(LetterResource.definition, { "page" => { "number" => "2" } })
    document = warm_objects { LetterResource.document(query: query, viewer: "a", keeper: nil).to_json }
    found = warm_objects { assert_equal 200, answer("/letters?page%5Bnumber%5D=2").first }
    assert_operator found - document, :<=, MOST
  end

  def test_a_304_allocates_few_objects_beside_its_document
    etag = answer("/letters/3")[1].fetch("etag")
    document = warm_objects { LetterResource.document(id: "3", viewer: "a", keeper: nil).to_json }
    found = warm_objects { assert_equal 304, answer("/letters/3", "HTTP_IF_NONE_MATCH" => etag).first }
    assert_operator found - document, :<=, MOST
  end

  private

  def answer(path, headers = {})
    @environments ||= {}
    environment = @environments[[path, headers]] ||=
      Rack::MockRequest.env_for(path, "HTTP_AUTHORIZATION" => "a", "HTTP_ACCEPT" => "application/vnd.api+json;q=0.9, */*;q=0.1", **headers)
    @app.call(environment.dup)
  end

  def warm_objects(&block)
    3.times(&block)
    allocated_objects(&block)
  end
end
