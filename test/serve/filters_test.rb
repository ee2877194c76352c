# frozen_string_literal: true

require "serve/journal_requests"

# Filters on columns over HTTP: operators, types, wrong values, and what carries them.
module FiltersContract
  include JournalRequests

  def build
    served = resource_of("PostResource") do
      filter :title, :slug, :rating, :price, :pinned, :published_on, :published_at, :writer_id, :writer_name
      filter :writer_team, from: "writer.team"
      filter(:month) { |posts, values| values == ["May"] ? posts : raise(Castellan::BadRequest, "#{values.first} is not a month") }
      filter(:own) { |posts, _values, viewer| viewer.zero? ? posts : posts.where(writer_id: viewer + 1) }
      sort :title, :rating, :writer_name, :id, default: "id"
      sort :team, from: "writer.team"
    end
    serve { resource served }
  end

  def setup
    super
    journal.run("UPDATE posts SET price = 12.50, pinned = #{yes}, published_on = '2026-01-31', " \
                "published_at = '2026-01-31 12:00:00#{zeros}' WHERE id = 1")
    journal.run("UPDATE posts SET price = 3, published_on = '2025-06-01', published_at = '2025-06-01 00:00:00' WHERE id = 2")
    journal.run("INSERT INTO posts (id, title, slug) VALUES (4, 'a,b 100%', NULL), (5, 'A_b', 'first_2')")
  end

  # As the ORM writes a time into SQLite, where times are text.
  def zeros = self.class.name.include?("Sequel") ? ".000000" : ""

  def yes = @yes ||= journal.rows("SELECT pinned FROM posts LIMIT 1").first["pinned"].is_a?(Integer) ? 1 : "true"

  # --- operators

  def test_a_value_or_a_list_of_values_selects_equal_rows
    assert_equal %w[1], ids("/posts?filter[title]=First")
    assert_equal %w[1 3], ids("/posts?filter[title]=First,Hidden")
    assert_equal %w[1 3], ids("/posts?filter[rating][in]=5,3")
    assert_equal %w[2], ids("/posts?filter[writer_id]=2")
    assert_equal %w[1], ids("/posts?filter[writer_id][]=1")
    assert_equal [], ids("/posts?filter[title]=")
  end

  def test_eq_takes_a_value_with_commas
    assert_equal %w[4], ids("/posts?filter[title][eq]=a,b 100%25")
  end

  def test_id_is_the_column_of_the_id
    journal.run("UPDATE posts SET slug = 'p' || (9 - id)")
    slugged = resource_of("PostResource") do
      id :slug
      filter :id
      sort :id
    end
    @app = serve { resource slugged }
    assert_equal %w[p5 p8], ids("/posts?filter[id]=p8,p5,1&sort=id")
    assert_equal %w[p8 p5], ids("/posts?filter[id]=p8,p5,4&sort=-id")
  end

  def test_not_selects_all_other_rows_also_those_without_a_value
    assert_equal %w[2 4 5], ids("/posts?filter[rating][not]=5,3")
  end

  def test_greater_and_smaller_compare_by_the_type_of_the_column
    assert_equal %w[1], ids("/posts?filter[rating][gt]=4")
    assert_equal %w[1 2], ids("/posts?filter[rating][gte]=4")
    assert_equal %w[3], ids("/posts?filter[rating][lt]=4")
    assert_equal %w[2 3], ids("/posts?filter[rating][lte]=4")
    assert_equal %w[2], ids("/posts?filter[rating][gt]=3&filter[rating][lt]=5")
    assert_equal %w[1], ids("/posts?filter[price][gte]=12.5")
    assert_equal %w[2], ids("/posts?filter[price][lt]=12.5")
    assert_equal [], ids("/posts?filter[rating][gt]=9000000000")
    assert_equal %w[3], ids("/posts?filter[title][gt]=First&filter[title][lt]=Second")
  end

  def test_dates_and_times_are_compared_in_utc
    assert_equal %w[1], ids("/posts?filter[published_on][gt]=2025-06-01")
    assert_equal %w[2], ids("/posts?filter[published_on]=2025-06-01")
    assert_equal %w[1], ids("/posts?filter[published_at][gte]=2026-01-31")
    assert_equal %w[1], ids("/posts?filter[published_at][gte]=2026-01-31T12:00:00Z")
    assert_equal [], ids("/posts?filter[published_at][gt]=2026-01-31T12:00:00Z")
    assert_equal %w[1], ids("/posts?filter[published_at][gt]=2026-01-31T13:59:59%2B02:00")
    assert_equal %w[2], ids("/posts?filter[published_at][lt]=2026-01-31T11:59:59.5Z")
  end

  def test_booleans_are_compared
    assert_equal %w[1], ids("/posts?filter[pinned]=true")
    assert_equal %w[2 3 4 5], ids("/posts?filter[pinned]=false")
  end

  def test_null_selects_rows_without_or_with_a_value
    assert_equal %w[4 5], ids("/posts?filter[rating][null]=true")
    assert_equal %w[1 2 3], ids("/posts?filter[rating][null]=false")
  end

  def test_like_takes_stars_and_nothing_else_as_wildcards
    assert_equal %w[1], ids("/posts?filter[title][like]=Fir*")
    assert_equal %w[2 3], ids("/posts?filter[title][like]=*e*n*")
    assert_equal %w[4], ids("/posts?filter[title][like]=*100%25")
    assert_equal [], ids("/posts?filter[title][like]=%25")
    assert_equal [], ids("/posts?filter[title][like]=*F%5Frst")
    assert_equal %w[5], ids("/posts?filter[title][like]=A_b")
    assert_equal %w[5], ids("/posts?filter[slug][like]=first_*")
    assert_equal [], ids("/posts?filter[title][like]=!*")
    assert_equal 5, ids("/posts?filter[title][like]=*****").size
    assert_bad_parameter "filter[title][like]", "/posts?filter[title][like]=#{"*a" * 6}", "5 * at most"
  end

  def test_a_path_is_filtered_at_its_end
    assert_equal %w[1], ids("/posts?filter[writer_name]=Ada")
    assert_equal %w[1 2], ids("/posts?filter[writer_team][lt]=2")
    assert_equal %w[4 5], ids("/posts?filter[writer_name][null]=true")
  end

  def test_a_path_is_compared_once_for_each_row_of_its_table
    deep = resource_of("CommentResource") do
      filter :writer, from: "post.writer.name"
      filter :title, from: "post.title"
    end
    explain = self.class.name.include?("Sqlite") ? "EXPLAIN QUERY PLAN" : "EXPLAIN"
    { "Ada" => 0, "Edsger" => 1 }.each do |name, team|
      [{ writer: name }, { writer: { like: "#{name[0]}*" } }, { writer: { gte: name, lte: name } }].each do |filter|
        document = deep.document(filter: filter, viewer: team)
        assert_equal(team.zero? ? %w[1 2] : [], JSON.parse(document.to_json)["data"].map { |comment| comment["id"] })
        plan = journal.rows("#{explain} #{document.explain.to_s[/^statement: (.*)/, 1]}").to_s
        refute_match(/(?<!hashed )SubPlan|CORRELATED/, plan)
      end
    end
    @app = serve { resource deep }
    assert_equal %w[3], ids("/comments?filter[title][gte]=H&filter[writer]=Edsger")
    journal.run("UPDATE posts SET writer_id = NULL WHERE id = 1")
    assert_equal %w[1 2], ids("/comments?filter[writer][not]=Edsger")
    assert_equal %w[3], ids("/comments?filter[writer][null]=false")
  end

  def test_a_scope_hides_the_values_of_a_path
    hidden = resource_of("PostResource") do
      scope { |posts, _| posts }
      filter :writer_name
      sort :writer_name, :id
    end
    @app = serve { resource hidden }
    assert_equal %w[3], ids("/posts?filter[writer_name]=Edsger", "HTTP_AUTHORIZATION" => "2")
    assert_equal [], ids("/posts?filter[writer_name]=Edsger", "HTTP_AUTHORIZATION" => "1")
    assert_equal %w[2 1], ids("/posts?sort=-writer_name,id", "HTTP_AUTHORIZATION" => "1") & %w[1 2]
  end

  def test_filter_blocks_take_the_viewer
    assert_equal %w[3], ids("/posts?filter[own]=true", "HTTP_AUTHORIZATION" => "2")
    assert_equal 5, ids("/posts?filter[own]=true").size
  end

  # --- what an `if:` of the row hides

  def test_a_column_that_some_rows_hide_is_neither_filtered_nor_sorted_by
    hiding = resource_of("PostResource") do
      scope { |posts, _| posts }
      attribute :rating, if: ->(row, viewer) { row.writer_id == viewer }, if_columns: %i[writer_id]
      attribute :author, from: "writer.name", if: ->(row, viewer) { row.writer_id == viewer }, if_columns: %i[writer_id]
      filter :rating, :title
      filter :stars, from: "rating"
      filter(:best) { |posts, _| posts.where(rating: 5) }
      sort :rating, :title, :author, default: "title"
    end
    open = Class.new(hiding) do
      filter :rating, reveals: true
      sort :rating, reveals: true
    end
    @app = serve do |_|
      resource hiding
      resource open, at: "open"
    end
    %w[filter[rating] filter[stars]].each { |name| assert_bad_parameter name, "/posts?#{name}[gt]=3", "cannot be filtered by" }
    %w[rating -rating title,rating].each { |order| assert_bad_parameter "sort", "/posts?sort=#{order}", "cannot be sorted by" }
    assert_equal %w[1], ids("/posts?filter[best]=true&filter[title]=First")
    assert_includes ids("/posts?sort=author"), "1" # writer_name shows the same column in every row
    assert_equal 1, ids("/open?filter[rating]=5&sort=rating").size
    assert_equal %w[1], ids("/posts?filter[title]=First&sort=-title")
    assert_equal 5, JSON.parse(hiding.render(sort: "rating", filter: { stars: 5 }, viewer: 1))["data"].first["attributes"]["rating"]
  end

  def test_cursors_do_not_contain_a_hidden_column
    of_viewer = -> { attribute :rating, if: ->(viewer) { viewer == 1 } }
    of_row = -> { attribute :rating, if: ->(row, _viewer) { row.title == "First" }, if_columns: %i[title] }
    [of_viewer, of_row].each do |declare|
      make = lambda do |reveals|
        resource_of(:PostResource) do
          instance_exec(&declare)
          sort :rating, default: "-rating", reveals: reveals
          page :cursor, size: 2
        end
      end
      error = assert_raises(Castellan::DeclarationError) { make.call(false).document.to_json }
      assert_includes error.message, "an if: hides rating, and cursors would contain its values"
      assert_includes make.call(true).document.to_json, '"data":[' if declare == of_row
    end
  end

  def test_a_column_that_one_attribute_hides_by_row_and_the_other_by_viewer_is_hidden
    hiding = resource_of("PostResource") do
      scope { |posts, _| posts }
      attribute :stars, from: :rating, if: ->(viewer) { viewer == 1 }
      attribute :rating, if: ->(row, viewer) { row.writer_id == viewer }, if_columns: %i[writer_id]
      filter :amount, from: :rating
      sort :amount, from: :rating
    end
    @app = serve { resource hiding }
    %w[filter[amount]=5 sort=amount].each do |query|
      assert_equal([400, 200], %w[2 1].map { |viewer| get("/posts?#{query}", "HTTP_AUTHORIZATION" => viewer).first.status }, query)
    end
  end

  def test_a_relationship_that_an_if_hides_is_neither_filtered_nor_sorted_by
    hiding = resource_of("PostResource") do
      scope { |posts, _| posts }
      belongs_to :writer, if: ->(viewer) { viewer == 1 }
      attribute :writer_name, from: "writer.name", if: ->(viewer) { viewer == 1 }
      filter :title, :writer_id
      filter :by, from: "writer_id"
      filter :team, from: "writer.team"
      sort :title, :writer_id
      sort :team, from: "writer.team"
    end
    shown = Class.new(hiding) do
      attribute :writer_id
      attribute :team, from: "writer.team"
    end
    @app = serve do
      resource hiding
      resource shown, at: "shown"
    end
    %w[filter[writer_id]=1 filter[by]=1 filter[team]=1 sort=writer_id sort=-team].each do |query|
      assert_equal([400, 200], %w[2 1].map { |viewer| get("/posts?#{query}", "HTTP_AUTHORIZATION" => viewer).first.status }, query)
      assert_equal 200, get("/shown?#{query}", "HTTP_AUTHORIZATION" => "2").first.status, query
    end
    assert_equal 200, get("/posts?filter[title]=First&sort=title", "HTTP_AUTHORIZATION" => "2").first.status
  end

  def test_a_relationship_that_some_rows_hide_is_neither_filtered_nor_sorted_by
    hiding = resource_of("PostResource") do
      scope { |posts, _| posts }
      belongs_to :writer, if: ->(row, viewer) { row.writer_id == viewer }, columns: %i[writer_id]
      filter :writer_id
      sort :writer_id
    end
    open = Class.new(hiding) do
      filter :writer_id, reveals: true
      sort :writer_id, reveals: true
    end
    @app = serve do
      resource hiding
      resource open, at: "open"
    end
    assert_bad_parameter "filter[writer_id]", "/posts?filter[writer_id]=1", "cannot be filtered by"
    assert_bad_parameter "sort", "/posts?sort=-writer_id", "cannot be sorted by"
    assert_equal 200, get("/open?filter[writer_id]=1&sort=writer_id").first.status
  end

  # --- what carries filters

  def test_count_and_pagination_links_have_the_filter
    _, document = get("/posts?filter[rating][gte]=4&page[size]=1&page[number]=2")
    assert_equal [%w[2], 2], [document["data"].map { |post| post["id"] }, document["meta"]["total"]]
    assert_equal %w[1], ids(document["links"]["prev"])
    assert_nil document["links"]["next"]
  end

  def test_kept_documents_differ_by_filter
    kept = resource_of("PostResource") do
      scope { |posts, _| posts }
      filter :rating
      cache :exact
    end
    bodies = %w[4 5 4].map { |rating| kept.document(:all, filter: { rating: { gte: rating } }, keeper: nil).to_json }
    assert_equal bodies.first, bodies.last
    refute_equal bodies.first, bodies[1]
  end

  # --- mistakes

  def test_an_unknown_operator_is_named_with_the_nearest
    assert_bad_parameter "filter[rating][gtee]", "/posts?filter[rating][gtee]=1", "did you mean gte?"
    assert_bad_parameter "filter[ratng]", "/posts?filter[ratng]=1", "did you mean rating?"
  end

  def test_a_wrong_value_is_named
    { "rating=abc" => ["rating", "must be a whole number"], "rating=1,x" => ["rating", '"x"'], "rating[gt]=1.5" => ["rating[gt]", "whole"],
      "rating=99999999999999999999" => ["rating", "64 bits"], "price=1e5000" => ["price", "a number"], "price=NaN" => ["price", "a number"],
      "pinned=yes" => ["pinned", "true or false"], "published_on=2026-02-30" => ["published_on", "a date such as"],
      "published_on=0000-01-01" => ["published_on", "a date"], "published_at[lt]=yesterday" => ["published_at[lt]", "a time such as"],
      "published_at[lt]=2026-01-31T25:00:00Z" => ["published_at[lt]", "a time"], "rating[null]=maybe" => ["rating[null]", "true or false"],
      "rating[like]=1*" => ["rating[like]", "rating is not text"], "pinned[gt]=false" => ["pinned[gt]", "pinned has no order"],
      "rating[gt]=" => ["rating[gt]", "whole number"], "rating[gt][x]=1" => ["rating[gt]", "must be text"],
      "title[in][a]=1" => ["title[in]", "by commas"], "title=%00" => %w[title UTF-8], "title[eq]=%ff" => ["title[eq]", nil] }
      .each do |query, (parameter, detail)|
        parameter = parameter.include?("[") ? parameter.sub("[", "][").prepend("filter[") : "filter[#{parameter}]"
        response, document = get("/posts?filter[#{query.sub(/\A\w+/) { |name| "#{name}]" }}")
        error = document["errors"].first
        assert_equal 400, response.status, query
        next if detail.nil?

        assert_equal parameter, error.dig("source", "parameter"), query
        assert_includes error["detail"], detail, query
      end
  end

  def test_a_value_that_a_block_refuses_is_named
    assert_bad_parameter "filter[month]", "/posts?filter[month]=Tuesday", "Tuesday is not a month"
  end

  def test_a_number_that_is_too_large_is_no_warning
    assert_equal 1.5, Castellan::Rows::ComparedColumn.float("1.5")
    assert_nil Castellan::Rows::ComparedColumn.float("1e999")
    assert_nil Castellan::Rows::ComparedColumn.float("x")
  end

  def test_values_are_never_sql
    ["x' OR '1'='1", "x'); DROP TABLE posts; --", "\\' OR 1=1 --", "$1", "?", ":title", "\#{1}"].each do |text|
      query = Rack::Utils.escape(text)
      assert_equal [], ids("/posts?filter[title][eq]=#{query}"), text
      assert_equal [], ids("/posts?filter[title][like]=#{query}"), text
      assert_equal 5, ids("/posts?filter[title][not]=#{query}").size, text
      journal.run("UPDATE posts SET title = '#{text.gsub("'", "''")}' WHERE id = 2")
      assert_equal %w[2], ids("/posts?filter[title][eq]=#{query}"), text
      assert_equal %w[2], ids("/posts?filter[title][like]=#{query}"), text
    end
  end

  # --- sort

  def test_sort_by_a_path
    assert_equal %w[1 3 2], ids("/posts?sort=writer_name&filter[writer_name][null]=false")
    assert_equal %w[2 3 1], ids("/posts?sort=-writer_name&filter[writer_name][null]=false")
    assert_equal %w[1 2 3], ids("/posts?sort=team&filter[writer_name][null]=false")
    assert_equal %w[3 1 2], ids("/posts?sort=-team,-rating,title&filter[writer_name][null]=false")
  end

  def test_ties_are_broken_by_the_primary_key
    journal.run("UPDATE posts SET writer_id = 1, rating = 1")
    assert_equal %w[1 2 3 4 5], ids("/posts?sort=writer_name")
    assert_equal %w[1 2 3 4 5], ids("/posts?sort=-writer_name,-rating")
    assert_equal %w[1 2], ids("/posts?sort=writer_name&page[size]=2")
    assert_equal %w[3 4], ids("/posts?sort=writer_name&page[size]=2&page[number]=2")
  end

  def test_an_unknown_sort_is_named
    assert_bad_parameter "sort", "/posts?sort=writer.name", "cannot be sorted by"
    assert_bad_parameter "sort", "/posts?sort=writer_nam", "did you mean writer_name?"
  end

  def test_the_tables_of_a_path_are_tables_of_the_document
    kept = resource_of("PostResource") do
      sort :team, from: "writer.team"
      filter :team, from: "writer.team"
    end
    fields = { "posts" => "title" }
    plain, sorted, filtered = [{}, { sort: "team" }, { filter: { team: "1" } }].map do |asked|
      kept.document(journal.models::Post, query: {}, fields: fields, keeper: nil, **asked).rendering.tables
    end
    assert_equal [%w[posts], %w[posts writers], %w[posts writers]], [plain, sorted, filtered].map(&:sort)
  end

  # --- Ruby

  def test_ruby_filters_by_values
    found = resource_of("PostResource") { filter(:rating, :pinned) }
    { { rating: 4 } => %w[2], { rating: [4, 5] } => %w[1 2], { rating: { gte: 4 } } => %w[1 2], { pinned: { eq: true } } => %w[1] }
      .each do |filter, ids|
        assert_equal ids, JSON.parse(found.render(:all, filter: filter))["data"].map { |post| post["id"] }
      end
  end

  def test_a_filter_counts_within_the_limit_of_the_callers_scope
    found = resource_of("PostResource") { filter(:rating) }
    document = JSON.parse(found.render(journal.models::Post.order(:id).limit(2), filter: { rating: { lte: 4 } }))
    assert_equal %w[2], document["data"].map { |post| post["id"] }
  end
end

JournalRequests.on_every_database(FiltersContract)

# Filters and sorts by `alias_attribute`, which only ActiveRecord has.
class FiltersByAliasesTest < Minitest::Test
  include JournalRequests

  def journal = Journal.active_record(:sqlite)

  def build
    posts = self.class.posts(journal.models)
    hiding = resource_of("PostResource") do
      model posts
      scope { |all, _| all }
      attribute :rating, if: ->(viewer) { viewer == 1 }
      attribute :summary, if: ->(viewer) { viewer == 1 }
      attribute :group, from: "writer.group", if: ->(row, viewer) { row.id == viewer }, if_columns: %i[id]
      belongs_to :writer, if: ->(viewer) { viewer == 1 }
      filter :stars, :author_id, :body
      filter :team, from: "writer.team"
      sort :stars, :author_id, :body
    end
    shown = Class.new(hiding) { attribute :points, from: :stars }
    serve do
      resource hiding
      resource shown, at: "shown"
    end
  end

  def self.posts(models)
    @posts ||= begin
      const_set(:Writer, Class.new(models::Writer) { alias_attribute :group, :team })
      const_set(:Post, Class.new(models::Post) do
        belongs_to :writer, class_name: "FiltersByAliasesTest::Writer"
        { stars: :rating, author_id: :writer_id, summary: :body }.each { |name, column| alias_attribute name, column }
      end)
    end
  end

  def test_a_filter_by_an_alias_of_a_hidden_column_is_closed
    %w[filter[stars]=5 filter[author_id]=1 sort=-stars sort=author_id].each do |query|
      assert_equal([400, 200], %w[2 1].map { |viewer| get("/posts?#{query}", "HTTP_AUTHORIZATION" => viewer).first.status }, query)
    end
    assert_equal 400, get("/posts?filter[team]=1", "HTTP_AUTHORIZATION" => "1").first.status # the end of the path is the alias
  end

  def test_a_filter_by_a_column_that_an_alias_shows_is_open
    assert_equal 200, get("/shown?filter[stars]=5&sort=stars", "HTTP_AUTHORIZATION" => "2").first.status
    assert_equal 200, get("/posts?filter[body]=x&sort=body", "HTTP_AUTHORIZATION" => "2").first.status # `body` shows it
  end
end
