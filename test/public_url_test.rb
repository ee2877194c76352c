# frozen_string_literal: true

require "test_helper"
require "castellan/public_url"

class PublicUrlTest < Minitest::Test
  def test_user_and_password_are_left_out
    { "postgres://ada:secret@db:5432/shop" => "postgres://db:5432/shop", "postgres://ada@db/shop" => "postgres://db/shop",
      "postgres://ada:s@cret@db/shop" => "postgres://db/shop", "postgres://ada:s/cret@db/shop" => "postgres://db/shop",
      "postgres://db/shop?sslpassword=a&PASSWORD=b" => "postgres://db/shop?sslpassword=…&PASSWORD=…",
      "postgres:///shop?user=ada&password=secret&sslmode=off" => "postgres:///shop?user=ada&password=…&sslmode=off",
      "db/shop.sqlite3" => "db/shop.sqlite3", nil => "" }.each do |name, shown|
      assert_equal shown, Castellan::PublicUrl.of(name)
    end
  end
end
