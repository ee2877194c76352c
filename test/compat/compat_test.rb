# frozen_string_literal: true

require "test_helper"
require "open3"

# Runs programs with the constants of jsonapi-serializer and fast_jsonapi, each in a new process.
class CompatTest < Minitest::Test
  USER = 'User = Struct.new(:id, :name, :email, :role_ids, :roles); ADA = User.new(1, "Ada", "ada@example.com", [3], []);'
  BODY = "include JSONAPI::Serializer; attributes :name, :email; has_many :roles, record_type: :role"
  SERIALIZER = "#{USER} class UserSerializer; #{BODY}; end; ".freeze
  SHOUTED = '{"data":{"id":"1","type":"user","attributes":{"shout":"ADA"},"relationships":{"roles":{"data":[{"id":"3","type":"role"}]}}}}'

  def test_a_serializer_works_unchanged
    expected = '{"data":{"id":"1","type":"user","attributes":{"name":"Ada","email":"ada@example.com"},' \
               '"relationships":{"roles":{"data":[{"id":"3","type":"role"}]}}}}'
    assert_equal expected, run_with("jsonapi_serializer", "#{SERIALIZER} puts UserSerializer.new(ADA).to_json")
  end

  def test_declared_members_have_the_gems_classes
    assert_equal <<~TEXT.chomp, run_with("jsonapi_serializer", <<~RUBY)
      [true, true, true]
    TEXT
      #{SERIALIZER}
      class RoleSerializer; include JSONAPI::Serializer; end
      UserSerializer.link :self, :name
      p [UserSerializer.relationships_to_serialize[:roles].instance_of?(FastJsonapi::Relationship),
         UserSerializer.attributes_to_serialize[:name].is_a?(FastJsonapi::Attribute), UserSerializer.data_links[:self].is_a?(FastJsonapi::Link)]
    RUBY
  end

  # The files that a library requires if it uses the gem, with the gem in the bundle or without it.
  REQUIRES = <<~RUBY
    require "jsonapi/serializer"
    require "jsonapi/serializer/errors"
    require "jsonapi/serializer/instrumentation"
    require "fast_jsonapi"
  RUBY
  OUT_OF_THE_BUNDLE = '$LOAD_PATH.reject! { |path| path.include?("/jsonapi-serializer-") }; '

  def test_a_library_that_requires_the_gem_gets_castellan
    ["", OUT_OF_THE_BUNDLE].each do |bundle|
      assert_equal <<~TEXT.chomp, run_program(<<~RUBY), bundle
        render.jsonapi-serializer.serializable_hash UserSerializer
        [[:name, "Ada"], [:email, "ada@example.com"]]
        true
        JSONAPI::Serializer::UnsupportedIncludeError < JSONAPI::Serializer::Error
        render.jsonapi-serializer.serializable_hash UserSerializer
        FastJsonapi::MandatoryField
        Mine
      TEXT
        #{bundle}require "castellan/compat/jsonapi_serializer"
        #{REQUIRES} #{SERIALIZER}
        UserSerializer.include(JSONAPI::Serializer::Instrumentation)
        ActiveSupport::Notifications.subscribe(/jsonapi-serializer/) { |event| puts [event.name, event.payload[:name]].join(" ") }
        p UserSerializer.new(ADA).serializable_hash.dig(:data, :attributes).to_a
        p UserSerializer.include?(Castellan::Serializer)
        begin
          UserSerializer.new(ADA, include: [:rolse])
        rescue JSONAPI::Serializer::Error => error
          puts [error.class, error.class.superclass].join(" < ")
        end
        begin
          UserSerializer.new(Struct.new(:name).new("No id")).serializable_hash
        rescue FastJsonapi::MandatoryField => error
          puts error.class.name
        end
        class Mine < JSONAPI::Serializer::Error; end
        puts Mine.name
      RUBY
    end
  end

  def test_out_of_the_bundle_the_gem_is_not_found_without_compat
    assert_equal "jsonapi/serializer", run_program(<<~RUBY)
      #{OUT_OF_THE_BUNDLE}
      begin
        require "jsonapi/serializer"
      rescue LoadError => error
        puts error.path
      end
    RUBY
  end

  def test_errors_are_rescued_by_the_names_of_the_gem
    assert_equal <<~TEXT.chomp, run_with("jsonapi_serializer", <<~RUBY)
      [:rolse, "UserSerializer", "rolse is not specified as a relationship on UserSerializer", true, 400]
      true
      "id is a mandatory field in the jsonapi spec"
    TEXT
      #{SERIALIZER}
      begin
        UserSerializer.new(ADA, include: [:rolse])
      rescue JSONAPI::Serializer::UnsupportedIncludeError => error
        p [error.include_item, error.klass, error.message, error.is_a?(JSONAPI::Serializer::Error), error.status]
      end
      p JSONAPI::Serializer::Error <= StandardError
      begin
        UserSerializer.new(Struct.new(:name, :email, :role_ids).new("No id")).serializable_hash
      rescue FastJsonapi::MandatoryField => error
        p error.message
      end
    RUBY
  end

  def test_a_loaded_gem_is_refused
    %w[jsonapi_serializer fast_jsonapi].each do |name|
      output = run_program(<<~RUBY)
        $VERBOSE = nil
        require "active_support"
        require "jsonapi/serializer"
        begin
          require "castellan/compat/#{name}"
        rescue Castellan::ConfigurationError => error
          puts error.message
        end
      RUBY
      assert_match(/\A(JSONAPI::Serializer|FastJsonapi::ObjectSerializer) is defined already \(.*jsonapi-serializer.*\)/, output)
      assert_includes output, "take the gem"
    end
  end

  def test_another_gem_may_define_the_module_jsonapi
    assert_equal "UserSerializer", run_program(<<~RUBY)
      module JSONAPI; module Other; end; end
      require "castellan/compat/jsonapi_serializer"
      #{SERIALIZER} puts UserSerializer
    RUBY
  end

  def test_fast_jsonapi
    assert_equal "#{SHOUTED}\ntrue",
                 run_with("fast_jsonapi", <<~RUBY)
                   #{USER}
                   class RoleSerializer
                     include FastJsonapi::ObjectSerializer
                   end
                   class UserSerializer
                     include FastJsonapi::ObjectSerializer
                     attribute(:shout) { |user| user.name.upcase }
                     has_many :roles, through: :assignments
                   end
                   puts UserSerializer.new(ADA).serialized_json
                   puts UserSerializer.new(ADA).serialized_json == UserSerializer.new(ADA).serializable_hash.to_json
                 RUBY
  end

  def test_fast_jsonapi_caches_in_rails_cache
    assert_equal "[1, 1, 2]\n300\n60\nnil", run_with("fast_jsonapi", <<~RUBY, "rails")
      Rails.cache = ActiveSupport::Cache::MemoryStore.new
      Kept = Struct.new(:id, :asked) { def cache_key = "kept/\#{id}" }
      class KeptSerializer
        include FastJsonapi::ObjectSerializer
        cache_options enabled: true
        attribute(:asked) { |kept| kept.asked += 1 }
      end
      one = Kept.new(1, 0)
      ask = -> { KeptSerializer.new(one).serializable_hash[:data][:attributes][:asked] }
      p [ask.call, ask.call, (Rails.cache.clear; ask.call)]
      puts KeptSerializer.cache_store_options[:expires_in]
      KeptSerializer.cache_options(enabled: true, cache_length: 60)
      puts KeptSerializer.cache_store_options[:expires_in]
      KeptSerializer.cache_options(enabled: false, cache_length: 60)
      p KeptSerializer.cache_store_instance
    RUBY
  end

  def test_cache_options_without_rails_raise
    assert_includes run_with("fast_jsonapi", <<~RUBY), "write cache_options store: …"
      begin
        Class.new { include FastJsonapi::ObjectSerializer; cache_options enabled: true }
      rescue Castellan::ConfigurationError => error
        puts error.message
      end
    RUBY
  end

  HAS_ONE = <<~RUBY
    ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
    ActiveRecord::Schema.verbose = false
    ActiveRecord::Schema.define do
      create_table(:employees) { |t| t.integer :user_id }
      create_table(:users) { |t| t.integer :badge_id }
    end
    class Badge < ActiveRecord::Base; self.table_name = "employees"; end
    class Employee < ActiveRecord::Base; end
    class User < ActiveRecord::Base; has_one :employee; has_one :badge, -> { where(id: 0) }; end
    class EmployeeSerializer; include JSONAPI::Serializer; end
    class UserSerializer; include JSONAPI::Serializer; attributes :employee_id, :badge_id; has_one :employee; end
    2.times { |n| User.create!(badge_id: 40 + n) }
    Employee.create!(id: 9, user_id: 2)
    [User.order(:id), User.order(:id).to_a, User.find(2)].each { |users| puts UserSerializer.new(users).then { |one| ONE ? one.to_json : one.serializable_hash.to_json } }
  RUBY

  def test_has_one_defines_the_reader_of_the_gem
    rails = 'require "active_record"; require "active_support/core_ext/object/json"; '
    original = run_program("$VERBOSE = nil; #{rails} require 'jsonapi/serializer'; ONE = false\n#{HAS_ONE}")
    ours = run_program("#{rails} require 'castellan/compat/jsonapi_serializer'; ONE = true\n#{HAS_ONE}")
    assert_equal original.lines.map { |line| JSON.parse(line) }, ours.lines.map { |line| JSON.parse(line) }
    assert_equal({ "employee_id" => 9, "badge_id" => 41 }, JSON.parse(ours.lines.last)["data"]["attributes"])
  end

  def test_subscribers_are_notified_of_documents
    assert_equal '["UserSerializer", UserSerializer]', run_with("jsonapi_serializer", <<~RUBY, "active_support/notifications")
      #{SERIALIZER}
      UserSerializer.include(JSONAPI::Serializer::Instrumentation)
      name = "\#{JSONAPI::Serializer::Instrumentation::NOTIFICATION_NAMESPACE}serializable_hash"
      ActiveSupport::Notifications.subscribe(name) { |event| p event.payload.values if event.name == "render.jsonapi-serializer.serializable_hash" }
      UserSerializer.new(ADA).serializable_hash
    RUBY
  end

  private

  def run_with(name, code, *features)
    run_program([*features, "castellan/compat/#{name}"].map { |feature| "require #{feature.inspect}\n" }.join + code)
  end

  def run_program(code)
    code = "require 'json'; require 'set'\n#{code}"
    output, errors, status = Open3.capture3(RbConfig.ruby, "-w", "-I#{File.join(ROOT, "lib")}", "-e", code)
    assert status.success?, output + errors
    assert_empty errors.lines.grep(/castellan|-e:/), errors
    output.chomp
  end
end
