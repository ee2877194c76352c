# frozen_string_literal: true

require "test_helper"
require "castellan/cli"
require "support/mounted_application"
require "support/printed_proxies"

# The configurations that `castellan proxy` prints are valid for the real programs; bad options are refused.
class ProxyCommandTest < Minitest::Test
  include PrintedProxies

  KINDS = %w[nginx varnish haproxy].freeze
  REST = ["--rest", "http://127.0.0.1:3000"].freeze

  LEGAL = [
    [], ["--only", "/posts", *REST], ["--only", "/posts,/posts/v1.0/a~b,/mail-logs/,/posts", *REST],
    ["--app", "http://[::1]:9292", "--only", "/posts", "--rest", "http://[::1]"],
    ["--app", "HTTP://127.0.0.1/"],
    ["--purger", "10.0.0.1/8,fe80::1/10,::1,0.0.0.0/1,10.0.0.0/8"]
  ].freeze

  # Options => the part of the message.
  REFUSED = {
    [] => "write nginx, varnish or haproxy", %w[squid] => "not squid",
    %w[nginx --only /a] => "--only needs --rest", %w[nginx --rest http://b] => "--rest needs --only",
    %w[nginx --xkey] => "--xkey is for varnish alone, not for nginx",
    %w[varnish --listen 80] => "--listen is for nginx and haproxy alone, not for varnish",
    %w[varnish --dir /a] => "--dir is for nginx alone, not for varnish",
    %w[haproxy --dir /a] => "--dir is for nginx alone, not for haproxy",
    %w[nginx a.ru --at api] => "write a path of letters, digits and . _ ~ -, such as /api",
    %w[nginx --dir cache] => "_ ~ -, such as /var/cache/castellan",
    %w[nginx --at /api] => "--at needs the application's config.ru", %w[nginx a.ru b.ru] => "name one file, not a.ru b.ru",
    %w[nginx --app https://b] => "write http, a host and a port",
    %w[nginx --app http://a:99999] => "such as http://127.0.0.1:9292",
    %w[nginx --app http://a:0] => "write http",
    %w[nginx --app http://u:p@a] => "write http", %w[nginx --app http://a?b] => "write http",
    %w[nginx --app http://a/b] => "write http", %w[nginx --app unix:/run/puma.sock] => "write http",
    %w[nginx --app http://[:::]] => "not a URL",
    %w[nginx --listen 0] => "write a port from 1 to 65535", %w[nginx --listen 65536] => "write a port",
    ["nginx", "--only", "/", *REST] => "write a path of letters",
    ["nginx", "--only", "", *REST] => "write a path", ["nginx", "--only", "/a,,/b", *REST] => '"": write a path',
    ["nginx", "--only", "/a%20b", *REST] => "write a path",
    %w[varnish --purger all] => "write an address or a network", %w[haproxy --purger 1.2.3] => "not an address",
    %w[nginx --purger 10.0.0.0/99] => "not an address", ["nginx", "--purger", ""] => "write an address"
  }.freeze

  # Texts that end a statement, a block or a string of one of the configurations.
  INJECTED = ["\n", "\r", "\0", *";}{'\"`$\\# (|*".chars].map { |text| "#{text}evil" }.freeze

  def test_legal_options_print_configurations_that_the_programs_accept
    needs :nginx, :varnish, :haproxy
    KINDS.product(LEGAL).each do |kind, options|
      status, printed, err = run_command(kind, *options)
      assert_equal [0, ""], [status, err]
      Dir.mktmpdir { |dir| assert_accepted kind, printed.sub("/var/cache/castellan", dir), dir }
    end
  end

  def test_varnish_accepts_a_configuration_with_xkey
    needs :varnish, :xkey
    Dir.mktmpdir { |dir| assert_accepted "varnish", run_command("varnish", "--xkey", "--only", "/posts", *REST)[1], dir }
  end

  def test_bad_options_print_a_correction
    REFUSED.each do |arguments, message|
      status, out, err = run_command(*arguments)
      assert_equal [2, ""], [status, out], arguments.inspect
      assert_includes err, message
    end
  end

  def test_no_option_can_inject_a_statement
    INJECTED.product(KINDS).each do |evil, kind|
      [["--app", "http://a#{evil}"], ["--app", "http://a:1#{evil}"], ["--app", "http://[::1#{evil}]"],
       ["--listen", "80#{evil}"], ["--only", "/a#{evil}", *REST], ["--only", "/a", "--rest", "http://b#{evil}"],
       ["--purger", "::1#{evil}"], ["--purger", "10.0.0.0/8#{evil}"], ["--dir", "/a#{evil}"],
       ["config.ru", "--at", "/a#{evil}"]].each do |options|
        status, out, err = run_command(kind, *options)
        assert_equal [2, ""], [status, out], options.inspect
        assert_includes err, "invalid argument"
      end
    end
  end

  def test_configurations_from_applications_are_accepted_and_name_the_policies
    needs :nginx, :varnish, :haproxy
    { "rack" => MountedApplication::RACK, "rails" => MountedApplication::RAILS }.each_value do |source|
      KINDS.each do |kind|
        in_application(source) do |file, dir|
          out, err, status = run_castellan("proxy", kind, file)
          assert_equal [true, ""], [status.success?, err.sub("server 192.0.2.1;\n", "")]
          refute_includes out, "192.0.2.1", "what the application prints is not a part"
          COMMENTS.each { |comment| assert_match(/^ *#{Regexp.escape("# #{comment}")}$/, out) }
          assert_accepted kind, out.sub("/var/cache/castellan", dir), dir
        end
      end
    end
  end

  COMMENTS = [
    "/api/posts: public, s-maxage=600, stale-while-revalidate=30", "/api/posts/drafts: public, no-cache, not cached",
    "/api/notes: public, no-cache; CDN-Cache-Control: max-age=600, stale-if-error=60", "/api/people: public, no-cache, not cached",
    "/api/fans: private, no-cache, not cached", "/private/posts: private, no-cache, not cached"
  ].freeze

  def test_only_restricts_the_declared_paths
    in_application(MountedApplication::RACK) do |file|
      out, err, = run_castellan("proxy", "nginx", file, "--only", "/api/posts/drafts,/api/people/1,/more", *REST)
      assert_includes err, "castellan proxy: no resource is served at /more (there is: "
      assert_equal ["~ ^/api/posts/drafts(/|$)", "~ ^/api/people/1(/|$)", "~ ^/more(/|$)", "/"], out.scan(%r{location ([~/].*) \{}).flatten
      assert_equal ["# /api/posts/drafts: public, no-cache, not cached", "# /api/people/1: public, no-cache, not cached"],
                   out.scan(%r{# /.*})
    end
  end

  # newrelic_rpm wraps the application and each middleware in such an object.
  def test_applications_are_found_behind_objects_without_an_app_variable
    wrapper = "class Wrapper\n  def initialize(app) = @target = app\n  def call(env) = @target.call(env)\nend\n"
    in_application("#{MountedApplication::RESOURCES}\n#{wrapper}map('/own') { use Wrapper; run PRIVATE }\nrun Wrapper.new(API)") do |file|
      out, err, = run_castellan("proxy", "varnish", file)
      assert_includes out.scan(%r{# (/.*):}).flatten, "/own/posts"
      assert_includes out, "# /posts/drafts:"
      refute_includes err, "--at"
    end
  end

  # The last lines of an application => the options, and the error.
  UNFIT = {
    "run ->(env) { API.call(env) }" => [[], "neither with map of config.ru nor with mount of Rails; write its path: --at /api"],
    "class Router\n  def initialize(api) = @api = api\n  def call(env) = @api.call(env)\nend\nrun Router.new(API)" =>
      [[], "neither with map of config.ru nor with mount of Rails; write its path: --at /api"],
    "map('/a;b') { run API }" => [[], 'serves "/a;b/posts", but a path in a configuration has letters'],
    "map('/a\nb') { run API }" => [[], 'serves "/a\nb/posts", but'],
    "run Castellan.app { resource PostResource, at: '/' }" => [REST, "a resource has the path /, so nothing would go to --rest"],
    "raise 'broken'" => [[], "the application does not boot: RuntimeError: broken"]
  }.freeze

  def test_an_application_without_fit_paths_prints_a_correction
    UNFIT.each { |last, (options, message)| assert_unfit "#{MountedApplication::RESOURCES}\n#{last}", message, *options }
    [[], %w[--at /api]].each do |at|
      assert_unfit "run ->(_env) { [200, {}, []] }", "mounts no Castellan.app: write `run Castellan.app { resource PostResource }`", *at
    end
    _, err, status = run_castellan("proxy", "varnish", "/nowhere/config.ru")
    assert_equal [1, "castellan proxy: there is no file /nowhere/config.ru\n"], [status.exitstatus, err]
  end

  def test_at_names_the_path_of_apps_in_no_route
    in_application("#{MountedApplication::RESOURCES}\nmap('/own') { run PRIVATE }\nrun ->(env) { API.call(env) }") do |file|
      out, err, = run_castellan("proxy", "varnish", file)
      assert_equal ["/own/posts"], out.scan(%r{# (/.*):}).flatten
      assert_includes err, "write its path: --at /api"
      out, err, = run_castellan("proxy", "varnish", file, "--at", "/v1", *REST)
      refute_includes err, "castellan proxy"
      assert_includes out, "# /own/posts: private"
      assert_match(%r{"\^\(/v1/posts/drafts\|.*/own/posts\|.*/v1/openapi\\.json\)}, out)
    end
  end

  def test_a_path_that_no_app_needs_is_named
    in_application("#{MountedApplication::RESOURCES}\nmap('/own') { run PRIVATE }\nmap('/api') { run API }") do |file|
      err = run_castellan("proxy", "nginx", file, "--at", "/v1")[1]
      assert_includes err, "castellan proxy: --at /v1 changes nothing"
    end
  end

  def test_a_purge_that_does_not_reach_the_proxy_is_named
    %w[Refresh Varnish].each do |name|
      purge = "PURGE = Castellan::Purge.new(DB, Castellan::Purge::#{name}.new('http://127.0.0.1'))"
      in_application("#{MountedApplication::RESOURCES}\n#{purge}\nrun Castellan.app { resource PostResource; purge PURGE }") do |file|
        warned = KINDS.select do |kind|
          err = run_castellan("proxy", kind, file)[1]
          err.include?("purges with Castellan::Purge::#{name}, which does not purge #{kind}")
        end
        assert_equal name == "Varnish" ? %w[nginx haproxy] : %w[varnish], warned
      end
    end
  end

  private

  def in_application(source)
    Dir.mktmpdir do |dir|
      File.write(file = File.join(dir, "config.ru"), source)
      yield file, dir
    end
  end

  def assert_unfit(source, message, *options)
    in_application(source) do |file|
      out, err, status = run_castellan("proxy", "varnish", file, *options)
      assert_equal [1, ""], [status.exitstatus, out], source.lines.last
      assert_includes err, message
    end
  end

  def run_command(*arguments)
    out = StringIO.new
    err = StringIO.new
    [Castellan::CLI.call(["proxy", *arguments], out: out, err: err), out.string, err.string]
  end

  def assert_accepted(kind, printed, dir)
    printed = "pid #{dir}/pid; events {} http { #{printed} }" if kind == "nginx"
    File.write(file = File.join(dir, "conf"), printed)
    program = Castellan::TestServers.binary(kind.to_sym)
    options = { "nginx" => ["-t", "-q", "-p", dir, "-e", "stderr", "-c"], "haproxy" => %w[-c -q -f],
                "varnish" => ["-j", "none", "-n", "#{dir}/n", "-C", "-f"] }
    output, status = Open3.capture2e(program, *options.fetch(kind), file)
    assert_predicate status, :success?, "#{output.lines.last(20).join}\n#{printed}"
    refute_match(/\[warn|WARNING/, output) unless kind == "varnish"
  end
end
