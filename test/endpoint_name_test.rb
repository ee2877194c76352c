# frozen_string_literal: true

require "test_helper"
require "castellan"

class EndpointNameTest < Minitest::Test
  def test_ids_and_personal_data_are_removed_from_a_path
    { "/users" => "/users", "/users/7/posts/8" => "/users/:id/posts/:id", "/api/v2/users/a1b2" => "/api/v2/users/:id",
      "/users/jane@example.org" => "/users/:id", "/users/jane%40example.org" => "/users/:id", "/" => "/", "" => "",
      "/t/#{"x" * 40}/edit" => "/t/:id/edit", "/users/3f2504e0-4f89-11d3-9a0c-0305e82c3301" => "/users/:id",
      "/users/12.json" => "/users/:id.json", "/users/jane@example.org.json" => "/users/:id.json" }.each do |path, name|
      assert_equal "GET #{name}", of("PATH_INFO" => path)
    end
  end

  def test_the_mount_path_is_part_of_the_name
    assert_equal "GET /shop/users/:id", of("SCRIPT_NAME" => "/shop", "PATH_INFO" => "/users/7")
  end

  def test_a_routers_name_is_preferred
    rails = { controller: "users", action: "show" }
    assert_equal "GET users#show", of("PATH_INFO" => "/users/jane", "action_dispatch.request.path_parameters" => rails)
    assert_equal "GET /users/:name", of("PATH_INFO" => "/users/jane", "sinatra.route" => "GET /users/:name")
    assert_equal "GET /users", of("PATH_INFO" => "/users", "action_dispatch.request.path_parameters" => {})
  end

  def test_it_is_short_and_readable_whatever_is_sent
    assert_equal 200, of("PATH_INFO" => "/a" * 500).size
    assert_predicate of("PATH_INFO" => "/\xff"), :valid_encoding?
  end

  private

  def of(env) = Castellan::EndpointName.of({ "REQUEST_METHOD" => "GET" }.merge(env))
end
