# frozen_string_literal: true

require "net/http"
require "open3"
require "castellan/cli"

# Starts nginx, Varnish and HAProxy with the configuration that `castellan proxy` prints.
#
#   with_proxy("nginx", 9292, "--only", "/tags", "--rest", url) { |base_url| … }
#   with_proxy("nginx", 9292, "path/to/config.ru") { |base_url| … }
module PrintedProxies
  # @param kind [String] nginx, varnish or haproxy
  # @param port [Integer] of the application on 127.0.0.1
  # @yieldparam base_url [String]
  # @yieldparam server [Castellan::TestServers::Server]
  def with_proxy(kind, port, *options, &block)
    needs kind.to_sym
    servers = Castellan::TestServers
    case kind
    when "varnish" then servers.varnish(port, vcl: printed(kind, port, *options), &block)
    when "haproxy"
      begin
        server = servers.haproxy { |listen| printed(kind, port, "--listen", listen.to_s, *options) }
        yield server.base_url, server
      ensure
        server&.stop
      end
    else
      Dir.mktmpdir do |dir|
        listen = servers.free_port
        conf = printed(kind, port, "--listen", listen.to_s, "--dir", dir, *options)
        servers.nginx(port, "location / { return 404; }", http: conf) do |_, nginx|
          yield "http://127.0.0.1:#{listen}", nginx
        end
      end
    end
  end

  # @return [String] the configuration. An application boots in a process of its own
  def printed(kind, port, *options)
    arguments = ["proxy", kind, "--app", "http://127.0.0.1:#{port}", *options]
    return printed_by_program(*arguments) if options.any? { |option| option.end_with?(".ru") }

    out = StringIO.new
    err = StringIO.new
    status = Castellan::CLI.call(arguments, out: out, err: err)
    assert_equal 0, status, err.string
    out.string
  end

  def printed_by_program(*arguments)
    out, err, status = run_castellan(*arguments)
    assert_predicate status, :success?, err
    out
  end

  # @return [Array(String, String, Process::Status)]
  def run_castellan(*arguments)
    Open3.capture3({ "BUNDLE_GEMFILE" => File.join(ROOT, "Gemfile") }, RbConfig.ruby, "-I#{File.join(ROOT, "lib")}",
                   File.join(ROOT, "exe/castellan"), *arguments)
  end
end
