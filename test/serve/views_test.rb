# frozen_string_literal: true

require "test_helper"
require "rack"
require "rack/lint"
require "rack/mock_request"
require "serve/journal"

# A database view without a primary key as a resource: read, filtered, sorted, paged, linked and included, and not written.
module ViewsContract
  def setup
    journal.fill
    journal.run("DROP VIEW IF EXISTS writer_statistics")
    journal.run("CREATE VIEW writer_statistics AS SELECT writers.id AS writer_id, writers.team AS team, COUNT(posts.id) AS posts_count, " \
                "MAX(posts.rating) AS best_rating FROM writers LEFT JOIN posts ON posts.writer_id = writers.id " \
                "GROUP BY writers.id, writers.team")
  end

  def teardown
    journal.run("DROP VIEW IF EXISTS writer_statistics")
  end

  def test_a_view_is_read_like_a_table
    journal.run("INSERT INTO posts (id, writer_id, title) VALUES (9, 1, 'More')")
    assert_equal [["1", 2], ["2", 1], ["3", 1]], get("/statistics?sort=-posts_count").then { |document|
      document["data"].map { |object| [object["id"], object["attributes"]["posts_count"]] }.sort
    }
    assert_equal({ "posts_count" => 2, "best_rating" => 5 }, get("/statistics/1")["data"]["attributes"])
    assert_equal "1", get("/statistics?sort=-posts_count&page[size]=1")["data"].first["id"]
    assert_equal ["1"], get("/statistics?filter[posts_count]=2")["data"].map { |object| object["id"] }
    assert_equal ["3"], get("/statistics?filter[team][gt]=1")["data"].map { |object| object["id"] }
    assert_equal "404", get("/statistics/99")["errors"].first["status"]
  end

  def test_a_view_links_to_tables
    document = get("/statistics/2?include=writer")
    assert_equal({ "type" => "writers", "id" => "2" }, document["data"]["relationships"]["writer"]["data"])
    assert_equal "Grace", document["included"].first["attributes"]["name"]
    assert_equal "Grace", get("/statistics/2/writer")["data"]["attributes"]["name"]
  end

  def test_a_view_is_not_written
    %w[POST PATCH DELETE].each do |method|
      status, headers, = app.call(Rack::MockRequest.env_for(method == "POST" ? "/statistics" : "/statistics/1", method: method))
      assert_equal [405, "GET, HEAD"], [status, headers["allow"]]
    end
  end

  private

  def get(path) = JSON.parse(Rack::MockRequest.new(app).get(path).body)

  def app
    @app ||= begin
      statistics = statistic
      writers = journal.models::WriterResource
      resource = Class.new(Castellan::Resource) do
        model statistics
        type "statistics"
        id :writer_id
        attributes :posts_count, :best_rating
        belongs_to :writer, resource: writers
        filter :team
        filter(:posts_count) { |rows, counts| rows.where(posts_count: counts.map { |count| Integer(count, 10, exception: false) }) }
        sort :posts_count
        page size: 10, max_size: 10
      end
      Rack::Lint.new(Castellan.app do
        resource resource
        resource writers
      end)
    end
  end
end

# Models of ActiveRecord.
module ActiveRecordViews
  def statistic
    models = journal.models
    Class.new(models::Base) do
      self.table_name = "writer_statistics"
      def self.name = "Statistic"
      belongs_to :writer, class_name: models::Writer.name
    end
  end
end

# Models of Sequel.
module SequelViews
  def statistic
    models = journal.models
    Class.new(Sequel::Model(models::DB[:writer_statistics])) do
      set_primary_key :writer_id
      many_to_one :writer, class: models::Writer, key: :writer_id
    end
  end
end

class ViewsOnActiveRecordTest < Minitest::Test
  include ViewsContract
  include ActiveRecordViews

  def journal = Journal.active_record(:sqlite)
end

class ViewsOnActiveRecordAndPostgresTest < Minitest::Test
  include ViewsContract
  include ActiveRecordViews

  def setup
    needs :postgres
    super
  end

  def journal = Journal.active_record(:postgres)
end

class ViewsOnSequelTest < Minitest::Test
  include ViewsContract
  include SequelViews

  def journal = Journal.sequel(:sqlite)
end

class ViewsOnSequelAndPostgresTest < Minitest::Test
  include ViewsContract
  include SequelViews

  def setup
    needs :postgres
    super
  end

  def journal = Journal.sequel(:postgres)
end
