# frozen_string_literal: true

require "test_helper"
require "tmpdir"

# Runs `bin/rails generate castellan:resource` in a new Rails application.
class ResourceGeneratorTest < Minitest::Test
  BOOT = <<~RUBY
    require "rails"
    require "active_record/railtie"
    require "castellan"
    class LibraryApp < Rails::Application
      config.root = Dir.pwd
      config.load_defaults Rails::VERSION::STRING.to_f
      config.eager_load = false
      config.secret_key_base = "a" * 64
      config.logger = Logger.new(nil)
      config.filter_parameters += %i[passw email nickname]
      config.active_record.encryption.primary_key = config.active_record.encryption.deterministic_key = "k" * 32
      config.active_record.encryption.key_derivation_salt = "s" * 32
    end
    unless ActiveRecord.version >= Gem::Version.new("8.1")
      ActiveRecord::Associations::Builder::Association.extensions << Class.new {
        def self.valid_options = %i[deprecated]
        def self.build(*) = nil
      }
    end
    Rails.application.initialize!
    ActiveRecord::Base.connection.instance_exec do
      create_table(:users) { |t| t.string :email; t.string :name; t.string :nickname; t.string :password_digest; t.string :api_token
                                 t.string :diary, :phone_ciphertext, :phone_bidx; t.string :type; t.integer :team_id, :rival_id; t.datetime :created_at }
      create_table(:teams) { |t| t.string :kind; t.string :name }
      create_table(:badges) { |t| t.integer :user_id; t.string :subject_type; t.integer :subject_id; t.string :label }
      create_table(:badges_users, id: false) { |t| t.integer :user_id; t.integer :badge_id }
      create_table(:photos, id: false) { |t| t.binary :bytes; t.json :meta; t.integer :number; t.string :title
                                             t.virtual :upper, type: :string, as: "upper(title)", stored: true }
      create_table(:seats, primary_key: %i[row number]) { |t| t.integer :row; t.integer :number }
    end
    def generate(*arguments)
      require "rails/generators"
      Rails::Generators.invoke("castellan:resource", arguments, behavior: :invoke, destination_root: Rails.root.to_s)
      Rails.application.reloader.reload! # as in a new process
    end
  RUBY
  FILES = {
    "config/database.yml" => "test: { adapter: sqlite3, database: library.sqlite3 }\n",
    "app/models/application_record.rb" => "class ApplicationRecord < ActiveRecord::Base\n  primary_abstract_class\nend\n",
    "app/models/user.rb" => <<~RUBY,
      class User < ApplicationRecord
        self.inheritance_column = nil
        belongs_to :team
        belongs_to :rival, class_name: "User", optional: true
        has_many :badges
        has_and_belongs_to_many :medals, class_name: "Badge"
        has_many :strangers, class_name: "Nobody"
        has_many :awards, class_name: "Badge", deprecated: true
        encrypts :diary
      end
    RUBY
    "app/models/team.rb" => "class Team < ApplicationRecord\n  self.inheritance_column = :kind\n  has_many :users\nend\n",
    "app/models/badge.rb" => "class Badge < ApplicationRecord\n  belongs_to :user\n  belongs_to :subject, polymorphic: true\n  " \
                             "belongs_to :land # as with ActiveHash\n  " \
                             "reflect_on_association(:land).define_singleton_method(:klass) { Struct }\nend\n",
    "app/models/photo.rb" => "class Photo < ApplicationRecord\nend\n",
    "app/models/seat.rb" => "class Seat < ApplicationRecord\nend\n",
    "app/models/admin/report.rb" => "module Admin\n  class Report < ApplicationRecord\n    self.table_name = \"teams\"\n  end\nend\n"
  }.freeze

  def test_columns_are_declared_except_those_that_look_secret
    output, file = generated("User")
    assert_includes file, "# Declares the users of the API. Clients can read every member below"
    assert_includes file, "class UserResource < Castellan::Resource\n  model ::User\n\n  attributes :email, :name, :created_at\n"
    left_out = "nickname, password_digest, api_token, diary, phone_ciphertext, phone_bidx"
    assert_includes file, "# Left out, because they look secret: #{left_out}\n"
    assert_includes file, "  # writable :email, :name\n  # deletable\n  # filter :email\n"
    %w[password_digest api_token diary nickname].each { |name| assert_match(/left out  #{name}, which looks secret/, output) }
    assert_includes file, '# attribute :type_name, from: "type"   # JSON:API reserves the name "type"'
    refute_match(/^ +attributes.*(team_id|password|token|diary)/, file)
  end

  def test_associations_with_a_resource_are_declared
    output, file = generated("User")
    assert_includes file, "  # belongs_to :team   # needs TeamResource: bin/rails generate castellan:resource Team\n"
    assert_includes file, %(  # has_many :medals, resource: "BadgeResource"   # needs BadgeResource: bin/rails generate castellan:)
    assert_includes file, %(  belongs_to :rival, resource: "UserResource"\n)
    assert_match(/# has_many :awards.*   # is deprecated in the model$/, file)
    assert_match(/# has_many :strangers   # refers to a class that does not exist/, file)
    assert_match(/left out  belongs_to :team needs TeamResource/, output)
    _, file = generated("User", "Team", last: "User")
    assert_includes file, "  # has_many :badges   # needs BadgeResource"
    _, file = generated("Team", "User", last: "User")
    assert_includes file, "\n  belongs_to :team\n"
  end

  def test_the_class_of_a_row_is_not_suggested_as_writable
    _, file = generated("Team")
    assert_includes file, "  attributes :kind, :name\n"
    assert_includes file, "  # writable :name\n"
  end

  def test_polymorphic_associations_are_marked
    _, file = generated("Badge")
    assert_includes file, "# belongs_to :subject   # is polymorphic: name its resources, resource: [PostResource, UserResource]"
    assert_includes file, %(# belongs_to :land, resource: "StructResource"   # leads to records that are in no table: give it a block)
    assert_includes file, "  attributes :label\n"
  end

  def test_a_model_in_a_module_and_one_without_a_single_key
    _, file = generated("Admin::Report")
    assert_includes file, "class Admin::ReportResource < Castellan::Resource\n  model ::Admin::Report\n"
    _, file = generated("Seat")
    refute_includes file, "# id :column" # the key of several columns is the id
    output, file = generated("Photo")
    assert_match(/left out  id, because the table has no primary key: write `id :column`/, output)
    assert_includes file, "# id :column   # the table has no primary key: name the column that identifies a row"
  end

  def test_every_suggestion_about_columns_can_be_uncommented
    output = run_app(<<~RUBY)
      generate("Photo")
      path = "app/resources/photo_resource.rb"
      text = File.read(path)
      puts text[/^  attributes.*/], text.scan(/^  # (?:writable|filter|sort).*/)
      File.write(path, text.gsub(/^  # (?=attribute|writable|deletable|filter|sort|id)/, "  ").sub("id :column", "id :number"))
      Photo.create!(number: 1, bytes: [255].pack("C"), title: "One")
      Photo.create!(number: 2, title: "Two")
      puts PhotoResource.render
    RUBY
    written = ["attributes :meta, :number, :title, :upper", "# writable :meta, :number, :title", "# filter :number", "# sort :number"]
    assert_equal written.map { |line| "  #{line}" }, output.lines.grep(/^  (?:#|attributes)/).map(&:chomp)
    assert_match(%r{"id":"1","attributes":\{"meta":null,"number":1,"title":"One","upper":"ONE","bytes":"/w=="}, output)
  end

  def test_a_generated_resource_boots_and_responds
    output = run_app(<<~RUBY)
      generate("Badge"); generate("Team"); generate("User"); generate("Admin::Report")
      team = Team.create!(name: "Blue")
      User.create!(email: "ada@example.com", name: "Ada", team: team, password_digest: "x", api_token: "y", diary: "z")
      Castellan.check!
      puts UserResource.render(include: "team,medals,rival"), Admin::ReportResource.render
    RUBY
    users, reports = output.lines.last(2)
    assert_includes users, '{"data":[{"type":"users","id":"1","attributes":{"email":"ada@example.com","name":"Ada","created_at":"2'
    assert_includes users, '"included":[{"type":"teams","id":"1","attributes":{"kind":null,"name":"Blue"}'
    assert_includes reports, '"attributes":{"kind":null,"name":"Blue"}'
    refute_match(/password|token|diary/, users)
  end

  def test_the_generator_writes_a_resource_that_a_mounted_application_lacks
    output = run_app(<<~RUBY)
      generate("Team"); generate("User")
      File.delete("app/resources/team_resource.rb")
      Rails.application.reloader.reload!
      mount = -> { Castellan.app { resource UserResource } }
      begin mount.call
      rescue Castellan::DeclarationError => error then puts error.message
      end
      require "rails/command"
      require "rails/commands/generate/generate_command"
      $stderr = $stdout
      mount.call
    RUBY
    assert_equal 2, output.scan("UserResource needs TeamResource").size, output
    assert_match(/^castellan: UserResource needs TeamResource/, output)
  end

  def test_a_missing_model_or_table_is_reported
    assert_includes run_app('generate("Usr")'), "Usr is not a model of ActiveRecord (did you mean User?)"
    assert_includes run_app('ActiveRecord::Base.connection.drop_table(:seats); generate("Seat")'), "Seat cannot be read: "
  end

  private

  # Returns the output of the generator, and the file of the last model.
  def generated(*names, last: names.last)
    path = "app/resources/#{last.gsub(/([a-z])([A-Z])/, '\1_\2').downcase.gsub("::", "/")}_resource.rb"
    output = run_app("#{names.map { |name| "generate(#{name.inspect})\n" }.join}puts '---', File.read(#{path.inspect})")
    output.split("---\n", 2)
  end

  def run_app(code)
    Dir.mktmpdir do |dir|
      write_files(dir, FILES)
      FileUtils.mkdir_p(File.join(dir, "app/resources"))
      environment = { "DATABASE_URL" => nil, "RAILS_ENV" => "test", "CASTELLAN" => nil }
      run_rails("$stderr.reopen($stdout)\n#{BOOT}#{code}", chdir: dir, env: environment)
    end
  end
end
