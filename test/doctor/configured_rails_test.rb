# frozen_string_literal: true

require "test_helper"
require_relative "doctor_process"

# The doctor loads Castellan before Rails; the application's configuration of Castellan still applies.
class ConfiguredRailsTest < Minitest::Test
  include Castellan::DoctorProcess

  APPLICATION = <<~RUBY
    require "rails"
    require "action_controller/railtie"
    require "castellan"
    class Reader < Rails::Application
      config.root = __dir__
      config.load_defaults 7.1
      config.eager_load = true
      config.secret_key_base = "a" * 64
      config.hosts.clear
      config.logger = Logger.new(IO::NULL)
      config.castellan.profile = { secret: "s" * 32 }
      config.castellan.detection = false
    end
    class PagesController < ActionController::API
      def index = render(json: Rails.application.middleware.map(&:name).grep(/Castellan/))
    end
    Reader.initialize!
    Reader.routes.draw { root to: "pages#index" }
  RUBY

  def test_the_configuration_of_the_application_applies
    with_app({ "application.rb" => APPLICATION, "config.ru" => "require_relative 'application'\nrun Reader\n" }) do |app|
      run = app.doctor("--get", "/", "--no-memory", "--bodies", "bodies")
      assert_equal 0, run.status, run.err
      assert_equal ["Castellan::Profile::Middleware"], JSON.parse(File.read(File.join(app.dir, "bodies/1.body")))
    end
  end

  def test_castellan_may_be_loaded_before_rails_and_before_active_record
    ["require 'castellan'", "require 'active_record'; require 'castellan'"].each do |early|
      with_app({ "application.rb" => "#{early}\n#{APPLICATION}" }) do |app|
        program = "print Reader.config.castellan.detection, Castellan::Railtie.instance.railtie_name"
        out, err, status = app.run(RbConfig.ruby, "-W0", "-rbundler/setup", "-r./application", "-e", program)
        assert_equal ["falsecastellan_railtie", 0], [out, status], err
      end
    end
  end
end
