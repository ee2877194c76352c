# frozen_string_literal: true

require "test_helper"
require "support/own_databases"
require "castellan/cli"
require "stringio"
require_relative "doctor_process"

# Requests that the doctor does not measure, with reason and advice; exit status 1, or 2 for invalid
# arguments.
class RefusalsTest < Minitest::Test
  include Castellan::DoctorProcess
  include Castellan::OwnDatabases

  ANSWERS = <<~'RUBY'
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/moved" then [301, { "location" => "/login" }, []]
      when "/secure"
        next [200, {}, ["over #{env["rack.url_scheme"]}"]] if env["HTTP_X_FORWARDED_PROTO"] == "https"
        [301, { "location" => "https://#{env["HTTP_HOST"]}#{env["PATH_INFO"]}?#{env["QUERY_STRING"]}".chomp("?") }, []]
      when "/private" then env["HTTP_AUTHORIZATION"] ? [200, {}, ["hello"]] : [401, {}, []]
      when "/conditional" then [304, {}, []]
      when "/forbidden" then [403, {}, ["<html><title>x</title><h1>Not yours</h1></html>"]]
      when "/quoted" then [404, { "content-type" => "text/html" }, ["<h1>No route matches [GET] &quot;/quoted&quot; &amp; more</h1>"]]
      when "/failed" then [500, {}, ["Sorry"]]
      when "/raised" then raise KeyError, "no such thing"
      when "/nil" then nil
      when "/later" then ($times = ($times || 0) + 1) > 2 ? [429, {}, []] : [200, {}, ["ok"]]
      else [404, {}, ["nothing"]]
      end
    end)
  RUBY

  def test_unsuccessful_responses_are_explained_and_not_measured
    with_app({ "config.ru" => ANSWERS }) do |app|
      {
        "/moved" => "answered 301, which is not measured: it redirects to /login; request that, or, if it is the sign-in page",
        "/secure?a=b" => "it redirects to https (force_ssl); pass -H 'X-Forwarded-Proto: https'",
        "/private" => "answered 401, which is not measured: it requires authentication; pass -H 'Authorization: …'",
        "/conditional" => "leave out If-None-Match",
        "/forbidden" => "this user is not permitted to see it (the body: Not yours)",
        "/nothing" => "answered 404, which is not measured: there is nothing at this path in this environment (the body: nothing)",
        "/quoted" => "in this environment (the body: No route matches [GET] \"/quoted\" & more)",
        "/failed" => "answered 500, which is not measured: it failed (the body: Sorry); look into its log",
        "/nil" => "raised an error, so there is nothing to measure: TypeError: the application answered with nil",
        "/later" => "GET /later: the application answered 429"
      }.each { |path, reason| assert_refused(path, reason, *called(app, path)) }
    end
  end

  def test_a_refusal_ends_the_process_with_status_one_and_names_files_from_its_folder
    with_app({ "config.ru" => ANSWERS }) do |app|
      run = app.doctor("--get", "/raised")
      reason = "the application raised an error, so there is nothing to measure: KeyError: no such thing\n    from config.ru:"
      assert_refused("/raised", reason, run.status, run.out, run.err)
    end
  end

  def test_files_of_the_application_may_lie_in_a_folder_of_our_name
    files = { "config.ru" => "require './lib/castellan/pay'\nrun ->(_env) { pay }\n",
              "lib/castellan/pay.rb" => "def pay = raise('no money')\n" }
    with_app(files) do |app|
      run = app.doctor("--get", "/")
      assert_includes run.out + run.err, "RuntimeError: no money\n    from lib/castellan/pay.rb:1:"
    end
  end

  def test_the_line_of_a_rackup_file_is_named_below_those_of_gems
    rackup = "require 'rack'\nrun ->(_env) { Rack::Utils.parse_nested_query('a=1&a[b]=2') }\n"
    with_app({ "config.ru" => rackup }) do |app|
      assert_match(/^castellan doctor: GET .*ParameterTypeError: .*\n    from config\.ru:2:/, app.doctor("--get", "/").err)
    end
  end

  def test_following_the_advice_works
    with_app({ "config.ru" => ANSWERS }) do |app|
      assert_equal 0, app.doctor("--get", "/secure", "-H", "X-Forwarded-Proto: https").status
      assert_equal 0, app.doctor("--get", "/private", "-H", "Authorization: Bearer x").status
    end
  end

  def test_an_application_that_does_not_boot_shows_its_error_and_environment
    with_app({ "config.ru" => "puts 'reading the configuration'\nENV.fetch('PAYMENT_KEY')\n" }) do |app|
      run = app.doctor("--get", "/")
      assert_equal 1, run.status
      assert_includes run.err, "does not boot: KeyError: key not found: \"PAYMENT_KEY\""
      assert_includes run.err, "config.ru:2"
      assert_includes run.err, "RAILS_ENV=production RACK_ENV=production APP_ENV=production"
      assert_includes run.err, "The application printed last:\n    reading the configuration"
    end
  end

  def test_syntax_errors_missing_files_and_an_exit_are_boot_failures
    { "def (" => "SyntaxError", "require 'nowhere/at/all'" => "Is its gem in the Gemfile", "exit 3" => "exit status 3",
      "raise ArgumentError, 'Missing `secret_key_base`'" => "SECRET_KEY_BASE_DUMMY=1" }.each do |source, said|
      with_app({ "config.ru" => "#{source}\n" }) do |app|
        run = app.doctor("--get", "/")
        assert_equal 1, run.status
        assert_includes run.err, said
      end
    end
  end

  def test_a_folder_without_an_application_names_the_argument_to_pass
    with_app({}) do |app|
      run = app.doctor("--get", "/")
      assert_equal 1, run.status
      assert_includes run.err, "there is no config.ru and no app.rb in #{app.dir}"
      assert_includes app.doctor("web.ru", "--get", "/").err, "there is no file web.ru"
    end
  end

  def test_a_missing_database_is_reported
    source = <<~RUBY
      require "active_record"
      ActiveRecord::Base.establish_connection(adapter: "postgresql", host: "127.0.0.1", port: #{free_port}, database: "x", password: "s3cret")
      run ->(_env) { [200, {}, [ActiveRecord::Base.connection.select_value("SELECT 1").to_s]] }
    RUBY
    with_app({ "config.ru" => source }) do |app|
      run = app.doctor("--get", "/")
      assert_equal 1, run.status
      assert_includes run.err, "the database postgresql (x), ActiveRecord cannot be reached"
      assert_includes run.err, "bin/rails db:prepare"
      refute_includes run.out + run.err, "s3cret"
    end
  end

  def test_a_database_without_a_name_is_reported
    source = %(require "active_record"\nActiveRecord::Base.establish_connection(adapter: "sqlite3")\nrun ->(_env) { [200, {}, []] }\n)
    with_app({ "config.ru" => source }) do |app|
      run = app.doctor("--get", "/")
      assert_includes run.out, "database: sqlite3 (no database is named), ActiveRecord\n"
      assert_includes run.err, "the database sqlite3 (no database is named), ActiveRecord cannot be reached: "
    end
  end

  def test_castellan_off_is_reported
    with_app({ "config.ru" => ANSWERS }) do |app|
      run = app.doctor("--get", "/nothing", CASTELLAN: "off")
      assert_equal 1, run.status
      assert_includes run.err, "castellan doctor: CASTELLAN=off is set, so no query would be seen; unset it\n"
    end
  end

  private

  # Runs in this process.
  def called(app, path)
    out = StringIO.new
    err = StringIO.new
    with_env("RAILS_ENV" => nil, "RACK_ENV" => nil, "APP_ENV" => nil) do
      [Castellan::CLI.call(["doctor", File.join(app.dir, "config.ru"), "--get", path], out: out, err: err), out.string, err.string]
    end
  end

  def assert_refused(path, reason, status, out, err)
    assert_equal 1, status, path
    assert_includes err, reason
    refute_includes out, "duration"
    refute_includes err, "lib/castellan/"
  end
end
