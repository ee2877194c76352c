# frozen_string_literal: true

require "test_helper"

class EqualityTest < Minitest::Test
  UUID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"

  # The conditions after WHERE, and what all rows have in common.
  CONDITIONS = {
    %("posts"."account_id" = 7) => { "account_id" => "7" },
    %(("account_id" = 7)) => { "account_id" => "7" },
    %(posts.Account_ID = 7) => { "account_id" => "7" },
    %((("account_id" = 7) AND ("id" IN (3)))) => { "account_id" => "7", "id" => "3" },
    %("posts"."deleted_at" IS NOT NULL AND "posts"."owner" = '#{UUID}' ORDER BY "posts"."id" LIMIT 3) => { "owner" => UUID },
    %("posts"."title" = 'a'' AND id = 3' AND NOT (spam = 1) AND id = 4) => { "id" => "4" },
    %(account_id = 7 OR id = 3) => {},
    %(account_id = 7 AND (id = 3 OR id = 4)) => { "account_id" => "7" },
    %(id BETWEEN 1 AND account_id = 7) => {},
    %(CASE WHEN a AND account_id = 7 AND b THEN 1 END) => {},
    %(f(a AND account_id = 7 AND b) AND id = 3) => { "id" => "3" },
    %(ARRAY[a AND account_id = 7 AND b] = x) => {},
    %(account_id = 7 IS NOT TRUE) => {},
    %(NOT account_id = 7) => {},
    %(account_id = 7.5) => {},
    %(account_id = 7::text) => {},
    %(account_id = -7) => {},
    %(account_id = '7') => {},
    %(account_id = other_id) => {},
    %(account_id <> 7) => {},
    %(id IN (3, 4)) => {},
    %(id NOT IN (3)) => {},
    %("users"."id" = 3) => {},
    %(- id = 3) => {},
    %(id IN (SELECT id FROM posts WHERE account_id = 7)) => {}
  }.freeze

  CONDITIONS.each do |condition, values|
    define_method("test_all_rows_of_#{condition}") { assert_equal values, of(%(SELECT "posts".* FROM "posts" WHERE #{condition})) }
  end

  def test_a_statement_of_several_tables_or_of_none_has_no_values
    ["SELECT * FROM posts JOIN users ON account_id = 7 WHERE id = 3", "SELECT * FROM posts, users WHERE id = 3",
     "SELECT * FROM posts p WHERE id = 3", "SELECT * FROM users WHERE id = 3", "SELECT * FROM posts WHERE id = 3 UNION SELECT * FROM posts",
     "WITH p AS (SELECT 1) SELECT * FROM posts WHERE id = 3", "SELECT * FROM posts", "SELECT 1", "SELECT * FROM blog.posts WHERE x"]
      .each { |sql| assert_empty of(sql), sql }
    assert_equal({ "id" => "3" }, Castellan::Rows::Equality.of("SELECT * FROM \"blog\".\"posts\" WHERE id = 3", "blog.posts"))
  end

  def test_a_filter_chooses_each_row_by_its_own_columns
    assert filter?("SELECT id FROM posts WHERE account_id = 7 OR title LIKE 'a%' ORDER BY id")
    assert filter?("SELECT id FROM posts")
    refute filter?("SELECT id FROM posts WHERE account_id = 7 ORDER BY id LIMIT 3")
    refute filter?("SELECT DISTINCT account_id FROM posts WHERE id = 7")
    refute filter?("SELECT id FROM posts WHERE id IN (SELECT parent_id FROM posts)")
  end

  private

  def of(sql) = Castellan::Rows::Equality.of(sql, "posts")
  def filter?(sql) = Castellan::Rows::Equality.filter?(sql, "posts")
end
