# frozen_string_literal: true

require "test_helper"
require "action_policy"
require "pundit"
require "rack"
require "rack/lint"
require "rack/mock_request"
require "serve/journal"

# `authorize` with the policies of Pundit and of Action Policy. A viewer is the number of a team; writers of the team may write.
module AuthorizersContract
  def setup
    journal.fill
  end

  def test_the_policy_decides_for_each_action
    authorizers.each do |authorizer|
      journal.fill
      app = build(authorizer)
      assert_equal [200, 403], [1, 2].map { |team| send_to(app, "PATCH", "/posts/1", team, body: "x") }, authorizer
      assert_equal 403, send_to(app, "DELETE", "/posts/1", 1)
      assert_equal [201, 403], %w[Mine Other].map { |title| send_to(app, "POST", "/posts", 1, title: title, writer: "1") }
      assert_equal 403, send_to(app, "POST", "/posts", 0, title: "Mine", writer: "3")
      assert_equal 4, journal.rows("SELECT id FROM posts").size
      assert_equal 2, journal.rows("SELECT tag_id FROM taggings WHERE post_id = 1").size
    end
  end

  def test_a_model_without_a_policy_is_an_error_of_the_application
    models = journal.models
    { Castellan::Write::PunditAuthorizer => Pundit::NotDefinedError,
      Castellan::Write::ActionPolicyAuthorizer => ActionPolicy::NotFound }.each do |authorizer, error|
      bare = Class.new(models::TagResource) { authorize authorizer }
      app = Castellan.app { resource bare, at: "posts" }
      assert_raises(error) { send_to(app, "DELETE", "/posts/3", 1) }
    end
  end

  def test_some_actions_alone
    authorizer = Castellan::Write::PunditAuthorizer
    app = build(:delete, authorizer)
    assert_equal [200, 403], [send_to(app, "PATCH", "/posts/1", 2, body: "x"), send_to(app, "DELETE", "/posts/1", 1)]
  end

  private

  def authorizers = [Castellan::Write::PunditAuthorizer, Castellan::Write::ActionPolicyAuthorizer]

  def plain
    models = journal.models
    Class.new(Castellan::Resource) do
      model models::Post
      type "posts"
      attributes :title, :body
      belongs_to :writer, resource: models::WriterResource
      has_many :tags, resource: models::TagResource
      writable :title, :body, :writer, :tags
      deletable
    end
  end

  def build(*arguments)
    posts = Class.new(plain) { authorize(*arguments) }
    rules = arguments.last == Castellan::Write::PunditAuthorizer ? PunditRules : ActionPolicyRules
    post = journal.models::Post.singleton_class
    post.remove_method(:policy_class) if post.method_defined?(:policy_class, false)
    post.define_method(:policy_class) { rules }
    Rack::Lint.new(Castellan.app do
      authenticate { |env| env["HTTP_AUTHORIZATION"].to_i }
      resource posts
    end)
  end

  def send_to(app, method, path, team, writer: nil, **attributes)
    data = { type: "posts", id: path[%r{/(\d+)}, 1], attributes: attributes }.compact
    data[:relationships] = { writer: { data: { type: "writers", id: writer } }, tags: { data: [{ type: "tags", id: "1" }] } } if writer
    input = method == "DELETE" ? {} : { input: JSON.generate(data: data), "CONTENT_TYPE" => "application/vnd.api+json" }
    app.call(Rack::MockRequest.env_for(path, method: method, "HTTP_AUTHORIZATION" => team.to_s, **input)).first
  end

  # The rules, in Ruby alone.
  module Rules
    def create? = record.title == "Mine" && update?
    def update? = record.writer.team == user
    def destroy? = false
  end

  PunditRules = Struct.new(:user, :record) { include Rules }

  class ActionPolicyRules < ActionPolicy::Base
    include Rules
  end
end

class AuthorizersOnActiveRecordTest < Minitest::Test
  include AuthorizersContract

  def journal = Journal.active_record(:sqlite)
end

class AuthorizersOnSequelTest < Minitest::Test
  include AuthorizersContract

  def journal = Journal.sequel(:sqlite)
end
