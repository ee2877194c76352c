# frozen_string_literal: true

require "test_helper"
require_relative "../../examples/support/demo"
require "net/http"
require "open3"

# Processes of a small example: they start, report why they do not, and end with the demo, however it ends.
class ExampleTest < Minitest::Test
  RACKUP = <<~RUBY
    File.write("pid", Process.pid)
    abort "no luck: \#{ENV["LUCK"]}" if ENV["LUCK"]
    run ->(env) { [200, { "content-type" => "text/plain" }, ["\#{ENV["NAME"]} \#{env["PATH_INFO"]}"]] }
  RUBY
  PUMA = %(bind "tcp://127.0.0.1:\#{ENV.fetch("PORT")}"\nquiet\n)

  def test_a_server_runs_while_the_block_works_and_not_longer
    with_example do |example|
      pid = example.with("NAME" => "Ada").serve do |url|
        assert_equal "Ada /x", Net::HTTP.get(URI("#{url}/x"))
        pid_of(example)
      end
      refute alive?(pid)
    end
  end

  def test_a_server_that_does_not_boot_shows_its_output
    with_example do |example|
      error = assert_raises(Castellan::Error) { example.with("LUCK" => "none").serve { flunk "it has booted" } }
      assert_match(/does not boot:.*no luck: none/m, error.message)
    end
  end

  def test_an_error_in_the_block_ends_the_server
    with_example do |example|
      assert_raises(KeyError) { example.serve { raise KeyError } }
      refute alive?(pid_of(example))
    end
  end

  def test_when_the_demo_is_killed_its_server_dies_too
    with_example do |example|
      demo = spawn_demo(example)
      server = pid_of(example)
      assert alive?(server)
      Process.kill(:KILL, demo.pid)
      assert_gone(server)
    ensure
      demo&.value
    end
  end

  def test_the_doctor_prints_a_row_for_each_request_with_its_body
    with_example do |example|
      rows = []
      example.with("NAME" => "Ada").doctor([["/a", true], ["/b", false]], memory: false) { |row|
        rows << row.values_at("request", "body", "status")
      }
      assert_equal [["GET /a", "Ada /a", 200], ["GET /b", "Ada /b", nil]], rows
    end
  end

  REPEATING = <<~RUBY
    require "sequel"
    DB = Sequel.sqlite
    DB.run("CREATE TABLE books (id INTEGER PRIMARY KEY, sequel_of_id INTEGER)")
    20.times { DB[:books].insert(sequel_of_id: 1) }
    class Book < Sequel::Model
      many_to_one :sequel_of, class: self
    end
    Book.first # loads its columns
    run ->(env) { [200, { "content-type" => "text/plain" }, Book.all.map { |book| book.sequel_of.id.to_s }] }
  RUBY

  # A step is measured unchanged; its fix is the next step.
  def test_the_doctor_tries_no_fix
    with_example("config.ru" => REPEATING) do |example|
      example.doctor([["/", true]], memory: false) do |row|
        assert_equal [true], row["findings"].map { |finding| finding["fix"].include?(".eager(:sequel_of)") }
        assert_nil row["findings"].first.fetch("trial")
      end
    end
  end

  def test_the_doctors_reason_is_the_error
    with_example do |example|
      error = assert_raises(Castellan::Error) { example.with("LUCK" => "bad").doctor([["/", true]]) { flunk } }
      assert_includes error.message, "the application does not boot"
    end
  end

  def test_a_failed_setup_prints_the_reason
    with_example("bin/setup" => "#!/bin/sh\necho no room\nexit 1\n") do |example|
      assert_includes assert_raises(Castellan::Error) { example.setup }.message, "bin/setup: no room"
    end
  end

  private

  def with_example(files = {})
    Dir.mktmpdir("castellan-example-test-") do |dir|
      write_files(dir, { "config.ru" => RACKUP, "config/puma.rb" => PUMA, **files }, perm: 0o755)
      yield Castellan::Demo::Example.new(dir, environment: { "BUNDLE_GEMFILE" => File.join(ROOT, "Gemfile") })
    end
  end

  # A process that serves the example until it is killed.
  def spawn_demo(example)
    program = "example = Castellan::Demo::Example.new(ARGV[0], environment: { 'BUNDLE_GEMFILE' => ARGV[1] })\n" \
              "example.serve { $stdout.syswrite(\"up\\n\") && sleep }"
    _, out, thread = Open3.popen2(RbConfig.ruby, "-I#{ROOT}/lib", "-r#{ROOT}/examples/support/demo", "-e", program,
                                  example.directory, File.join(ROOT, "Gemfile"))
    assert_equal "up\n", out.gets
    thread
  end

  def pid_of(example) = Integer(File.read(File.join(example.directory, "pid")))

  # A process that has ended and was not waited for yet, by the process that inherited it, does not run.
  def alive?(pid)
    Process.kill(0, pid)
    !File.exist?("/proc/#{pid}/stat") || File.read("/proc/#{pid}/stat")[/\) (\w)/, 1] != "Z"
  rescue Errno::ESRCH, Errno::ENOENT
    false
  end

  def assert_gone(pid)
    deadline = Castellan::TestServers.now + 20
    sleep 0.02 while alive?(pid) && Castellan::TestServers.now < deadline
    refute alive?(pid)
  end
end
