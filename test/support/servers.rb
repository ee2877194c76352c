# frozen_string_literal: true

require "fileutils"
require "json"
require "monitor"
require "rbconfig"
require "socket"
require "tmpdir"

module Castellan
  # Starts real servers for tests: databases, caches, proxies, Chromium and Puma.
  #
  #   needs :postgres                                         # skips the test if it is not installed (fails with CI=true)
  #   Castellan::TestServers.postgres_url                     # => "postgres://postgres@127.0.0.1:40001/castellan_1", a new empty database
  #   Castellan::TestServers.redis_url                        # => "redis://127.0.0.1:40002/0", one server per process: use your own keys
  #   Castellan::TestServers.memcached_url                    # => "memcached://127.0.0.1:40003"
  #   Castellan::TestServers.varnish(port) { |base_url| … }   # in front of 127.0.0.1:port; without a block, runs until exit
  #   Castellan::TestServers.nginx(port) { |base_url| … }
  #   Ferrum::Browser.new(**Castellan::TestServers.chromium)
  #   Castellan::TestServers.puma("examples/users", env: { "DATABASE_URL" => url }) { |base_url| … }
  #   Castellan::TestServers.puma("config.ru") { |base_url| … }           # a rackup file, in the bundle of the tests
  #   Castellan::TestServers.puma(->(_env) { [200, {}, ["ok"]] }) { |base_url| … }   # in this process
  #
  # PostgreSQL, Redis and memcached start at the first call and are shared by the test process. Every server listens on
  # a free port of 127.0.0.1, keeps its files in a new directory, and is stopped at exit; when the test process is
  # killed, a watchdog stops it (test/support/watchdog.rb). PostgreSQL runs without fsync, but for `durable_postgres_url`.
  module TestServers
    # Raised if a server did not start. The message ends with the output of the server.
    class Failed < StandardError; end

    BOOT_SECONDS = 60
    MOST_RESERVED = 64
    ATTEMPTS = 3
    BINARIES = {
      postgres: "postgres", redis: "redis-server", memcached: "memcached", varnish: "varnishd", nginx: "nginx", haproxy: "haproxy",
      chromium: "chromium"
    }.freeze
    PACKAGES = {
      postgres: "postgresql", redis: "redis-server", memcached: "memcached", varnish: "varnish", nginx: "nginx", haproxy: "haproxy",
      chromium: "chromium"
    }.freeze
    MODULES = { xkey: "/usr/lib/*/varnish/vmods/libvmod_xkey.so" }.freeze # Debian package varnish-modules
    CHROMIUM_SWITCHES = %w[
      no-sandbox disable-gpu disable-quic no-first-run disable-background-networking disable-component-update disable-sync
      disable-dev-shm-usage
    ].freeze
    LOCK = Monitor.new
    private_constant :LOCK

    # A running process with its pid, base directory and output.
    class Server
      attr_reader :pid, :port, :dir, :name

      def initialize(name:, pid:, port:, dir:, stop:)
        @name = name
        @pid = pid
        @port = port
        @dir = dir
        @stop = stop
      end

      def base_url = "http://127.0.0.1:#{port}"
      def log = File.exist?(log_path) ? File.read(log_path) : ""
      def log_path = File.join(dir, "log")

      # @return [Boolean] whether the process runs
      def alive?
        !@pid.nil? && Process.waitpid(@pid, Process::WNOHANG).nil?
      rescue Errno::ECHILD
        false
      end

      # Sends the stop signal and waits, then kills the process group and removes the files.
      def stop
        return unless @pid

        signal(@stop, @pid)
        await_exit || signal(:KILL, -@pid)
        reap
        signal(:KILL, -@pid)
        Watchdog.forget(@pid)
        @pid = nil
        FileUtils.rm_rf(dir)
      end

      private

      def await_exit
        deadline = TestServers.now + 5
        until (gone = Process.waitpid(@pid, Process::WNOHANG)) || TestServers.now > deadline
          sleep 0.01
        end
        gone
      rescue Errno::ECHILD
        true
      end

      def reap
        Process.waitpid(@pid)
      rescue Errno::ECHILD
        nil
      end

      def signal(name, pid)
        Process.kill(name, pid)
      rescue Errno::ESRCH, Errno::EPERM
        nil
      end
    end

    # A small process that survives this one for a moment.
    # It reads from a pipe which processes were started. When the pipe closes, because this process ended in
    # any way, it stops those that still run and removes the directories.
    module Watchdog
      class << self
        def watch(pid, signal) = tell("watch", pid, signal)
        def forget(pid) = tell("forget", pid)
        def remove(dir) = tell("remove", dir)

        private

        def tell(*words)
          pipe.puts(JSON.generate(words))
        rescue Errno::EPIPE
          nil
        end

        def pipe
          return @pipe if @pipe && @owner == Process.pid

          reader, @pipe = IO.pipe
          @pipe.sync = true
          @owner = Process.pid
          pid = Process.spawn(RbConfig.ruby, "--disable-gems", File.expand_path("watchdog.rb", __dir__), in: reader, pgroup: true)
          Process.detach(pid)
          reader.close
          @pipe
        end
      end
    end
    private_constant :Watchdog

    class << self
      # @return [Boolean] whether the program or module of this name (a key of BINARIES or MODULES) is installed
      def available?(name) = MODULES.key?(name) ? Dir.glob(MODULES[name]).any? : !binary(name).nil?

      # @return [String, nil] the path of the program
      def binary(name)
        file = BINARIES.fetch(name)
        search_path.map { |dir| File.join(dir, file) }.find { |path| File.file?(path) && File.executable?(path) }
      end

      # @return [Integer] a port that is free now
      def free_port
        LOCK.synchronize do
          loop do
            port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
            return port if (@ports ||= {}).store(port, @ports[port].to_i + 1) == 1 && reserve(port)
          end
        end
      end

      # @param database [String] the name of the new, empty database; a unique name by default
      # @param settings [Array<String>] further ones of the server, such as "max_prepared_transactions=4"
      # @return [String] postgres://postgres@127.0.0.1:port/database (superuser, no password)
      def postgres_url(database: fresh_name, settings: [])
        create_database(shared([:postgres, *settings]) { start_postgres(settings: FAST + settings) }.port, database)
      end

      # @return [String] the same on a server with PostgreSQL's own settings, which writes each commit to the disk
      def durable_postgres_url(database: fresh_name)
        create_database(shared(:durable_postgres) { start_postgres(settings: []) }.port, database)
      end

      # @return [String] the path of one of PostgreSQL's programs, such as pg_dump
      def tool(name) = File.join(File.dirname(File.realpath(binary(:postgres))), name)

      def create_database(port, database)
        run!(tool("createdb"), "-h", "127.0.0.1", "-p", port.to_s, "-U", "postgres", database)
        "postgres://postgres@127.0.0.1:#{port}/#{database}"
      end

      # @param settings [Array<String>] further ones of the primary
      # @return [Array(String, String)] the URLs of a new database on a new primary and on its streaming
      #   replica
      def postgres_with_replica(settings: [])
        primary = start_postgres(settings: FAST + settings)
        run!(tool("createdb"), "-h", "127.0.0.1", "-p", primary.port.to_s, "-U", "postgres", "castellan")
        from = ["-h", "127.0.0.1", "-p", primary.port.to_s, "-U", "postgres"]
        replica = start_postgres { |data| run!(*as_postgres(tool("pg_basebackup"), "-D", data, *from, "-R", "-c", "fast")) }
        [primary, replica].map { |server| "postgres://postgres@127.0.0.1:#{server.port}/castellan" }
      end

      # @return [String] redis://127.0.0.1:port/0
      def redis_url = "redis://127.0.0.1:#{redis.port}/0"

      # @return [Server] the shared Redis; to stop one in a test, use `start_redis`
      def redis = shared(:redis) { start_redis }

      # @return [String] memcached://127.0.0.1:port
      def memcached_url = "memcached://127.0.0.1:#{memcached.port}"

      # @return [Server] the shared memcached
      def memcached = shared(:memcached) { start_memcached }

      # Starts a separate Redis. @return [Server]
      def start_redis(*arguments)
        start(:redis) do |port, dir|
          [binary(:redis), "--port", port.to_s, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir, *arguments]
        end
      end

      # Starts a separate memcached. @return [Server]
      def start_memcached(*arguments)
        start(:memcached) do |port|
          [binary(:memcached), "-l", "127.0.0.1", "-p", port.to_s, "-U", "0", *(%w[-u root] if root?), *arguments]
        end
      end

      # @param backend_port [Integer] the port of the application
      # @param vcl [String, nil] a whole VCL; nil for the built-in VCL
      # @yieldparam base_url [String]
      # @return [Server] without a block; otherwise the result of the block
      def varnish(backend_port, vcl: nil, &block)
        lend(start(:varnish) { |port, dir| varnish_command(backend_port, port, dir, vcl) }, &block)
      end

      # @param backend_port [Integer] the port of the application, which the configuration calls
      #   `http://backend`
      # @param conf [String] the contents of `server { }`
      # @param http [String] the start of `http { }`, e.g. `proxy_cache_path cache keys_zone=c:1m;` (with
      #   relative paths)
      # @yieldparam base_url [String]
      # @return [Server] without a block; otherwise the result of the block
      def nginx(backend_port, conf = "location / { proxy_pass http://backend; }", http: "", &block)
        lend(start(:nginx) { |port, dir| nginx_command(backend_port, port, dir, conf, http) }, &block)
      end

      # @yieldparam port [Integer]
      # @yieldreturn [String] the configuration
      # @return [Server]
      def haproxy
        start(:haproxy) do |port, dir|
          File.write(file = File.join(dir, "haproxy.cfg"), yield(port))
          [binary(:haproxy), "-f", file, "-db"]
        end
      end

      # @return [Hash] arguments for Ferrum::Browser.new: headless, no sandbox, no traffic of its own, a new
      #   profile
      def chromium
        profile = File.join(base_dir, "chromium-#{fresh_name}")
        switches = CHROMIUM_SWITCHES.to_h { |switch| [switch, nil] }
        { browser_path: binary(:chromium), headless: true, process_timeout: BOOT_SECONDS, timeout: 30,
          browser_options: switches.merge("user-data-dir" => profile) }
      end

      # Boots Puma on a free port, waits until it accepts connections, yields, and stops it.
      #
      # @param app [String, #call] a directory with a Gemfile (its config/puma.rb, if there is one, must use
      #   PORT), a rackup file (runs in this bundle), or a Rack application (runs in a thread of this process)
      # @param env [Hash] environment variables of the process; nil deletes a variable
      # @yieldparam base_url [String] http://127.0.0.1:port
      # @yieldparam server [Server] has pid and log
      # @return the result of the block; without a block the Server, which runs until the caller stops it, or
      #   until exit
      def puma(app, env: {}, threads: 5, &block)
        return in_process_puma(app, threads, &block) if app.respond_to?(:call)

        lend(start_puma(File.expand_path(app), env, threads), &block)
      end

      # Stops all servers of this process. Called at exit.
      def stop_all
        LOCK.synchronize do
          @servers&.each(&:stop)
          @servers = nil
          @shared = nil
          FileUtils.rm_rf(@base_dir) if @base_dir
          @base_dir = nil
        end
      end

      # Starts a program and waits until it listens on its port. Tries another port if this one is taken.
      #
      # @yieldparam port [Integer]
      # @yieldparam dir [String] an empty directory
      # @yieldreturn [Array<String>] the command
      # @return [Server]
      def start(name, env: {}, chdir: nil, stop: :TERM, owner: nil, **spawn_options)
        attempt ||= 1
        port = free_port
        dir = Dir.mktmpdir("castellan-#{name}-", base_dir)
        FileUtils.chown(owner, nil, dir) if owner
        server = launch(name, yield(port, dir), port:, dir:, env:, chdir: chdir || dir, stop:, **spawn_options)
        await(server)
        server
      rescue Failed => error
        raise unless error.message.match?(/in use|EADDRINUSE/i) && (attempt += 1) <= ATTEMPTS

        retry
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      private

      # Another process of the tests may have found the same port, and start its server there. The name of Linux's
      # abstract sockets ends with the process.
      def reserve(port)
        (@reserved ||= []) << UNIXServer.new("\0castellan-test-#{port}")
        @reserved.shift.close if @reserved.size > MOST_RESERVED
        true
      rescue Errno::EADDRINUSE
        false
      rescue SystemCallError, ArgumentError # another system
        true
      end

      def root? = Process.euid.zero?

      def search_path
        ENV.fetch("PATH", "").split(File::PATH_SEPARATOR) + %w[/usr/sbin /usr/local/sbin] + postgres_dirs
      end

      def postgres_dirs = Dir["/usr/lib/postgresql/*/bin"].sort_by { |path| -path[/\d+/].to_i }
      def fresh_name = LOCK.synchronize { "castellan_#{Process.pid}_#{@names = @names.to_i + 1}" }

      # The directory itself is not private, because the user of PostgreSQL must enter it; its contents are.
      def base_dir
        LOCK.synchronize do
          forget_parents_servers
          @base_dir ||= Dir.mktmpdir("castellan-test-").tap { |dir| File.chmod(0o755, dir) && Watchdog.remove(dir) }
        end
      end

      # After a fork, the servers belong to the parent process.
      def forget_parents_servers
        return if @owner == Process.pid

        @owner = Process.pid
        @servers = @shared = @base_dir = nil
        at_exit { stop_all if @owner == Process.pid }
      end

      def shared(name)
        LOCK.synchronize do
          forget_parents_servers
          (@shared ||= {})[name] ||= yield
        end
      end

      def lend(server)
        return server unless block_given?

        begin
          yield server.base_url, server
        ensure
          server.stop
        end
      end

      def launch(name, command, port:, dir:, env:, chdir:, stop:, **spawn_options)
        raise Failed, "#{name} is not installed (Debian package #{PACKAGES[name]})" if command.first.nil?

        log = File.join(dir, "log")
        pid = Process.spawn(env, *command, chdir:, pgroup: true, in: File::NULL, %i[out err] => log, **spawn_options)
        Watchdog.watch(pid, stop.to_s)
        Server.new(name:, pid:, port:, dir:, stop:).tap { |server| LOCK.synchronize { (@servers ||= []) << server } }
      end

      def await(server)
        deadline = now + BOOT_SECONDS
        until listening?(server.port)
          alive = server.alive?
          fail_with(server, alive ? "does not listen after #{BOOT_SECONDS} s" : "ended at once") if !alive || now > deadline
          sleep 0.01
        end
      end

      def listening?(port)
        TCPSocket.new("127.0.0.1", port).close
        true
      rescue Errno::ECONNREFUSED
        false
      end

      def fail_with(server, what)
        log = server.log.lines.last(30).join
        server.stop
        raise Failed, "#{server.name} #{what}:\n#{log}"
      end

      def run!(*command, chdir: base_dir)
        output = IO.popen([*command, { err: %i[child out], in: File::NULL, chdir: }], &:read)
        raise Failed, "#{command.join(' ')}:\n#{output}" unless $?.success?
      end

      # PostgreSQL does not run as root, so a Ruby process switches its user and then executes PostgreSQL.
      BECOME = "user = Etc.getpwnam(ARGV.shift); Process.initgroups(user.name, user.gid); " \
               "Process::GID.change_privilege(user.gid); Process::UID.change_privilege(user.uid); exec(*ARGV)"
      private_constant :BECOME

      def as_postgres(*command)
        root? ? [RbConfig.ruby, "--disable-gems", "-retc", "-e", BECOME, "postgres", *command] : command
      end

      FAST = %w[fsync=off synchronous_commit=off full_page_writes=off].freeze
      private_constant :FAST

      def start_postgres(settings: FAST)
        raise Failed, "postgres is not installed (Debian package postgresql)" unless binary(:postgres)

        start(:postgres, stop: :QUIT, owner: ("postgres" if root?)) do |port, dir|
          data = File.join(dir, "data")
          block_given? ? yield(data) : initdb(data)
          as_postgres(binary(:postgres), "-D", data, "-p", port.to_s, "-h", "127.0.0.1", "-k", dir,
                      *[*settings, "max_connections=200"].flat_map { |setting| ["-c", setting] })
        end.tap { |server| await_postgres(server) }
      end

      def initdb(data)
        run!(*as_postgres(tool("initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"))
      end

      # PostgreSQL listens before it accepts queries.
      def await_postgres(server)
        deadline = now + BOOT_SECONDS
        until system(tool("pg_isready"), "-q", "-h", "127.0.0.1", "-p", server.port.to_s)
          fail_with(server, "does not answer") if now > deadline
          sleep 0.02
        end
      end

      def varnish_command(backend_port, port, dir, vcl)
        source = ["-b", "127.0.0.1:#{backend_port}"]
        if vcl
          File.write(file = File.join(dir, "default.vcl"), vcl)
          source = ["-f", file]
        end
        [binary(:varnish), "-F", "-j", "none", "-n", File.join(dir, "work"), "-a", "127.0.0.1:#{port}", *source, "-s", "malloc,32m"]
      end

      def nginx_command(backend_port, port, dir, conf, http)
        File.write(file = File.join(dir, "nginx.conf"), nginx_conf(backend_port, port, conf, http))
        [binary(:nginx), "-p", dir, "-c", file, "-e", "stderr"]
      end

      def nginx_conf(backend_port, port, conf, http)
        temporary = %w[client_body proxy fastcgi uwsgi scgi].map { |kind| "#{kind}_temp_path #{kind}_temp;" }.join(" ")
        <<~CONF
          #{'user root;' if root?}
          daemon off; worker_processes 1; pid nginx.pid; error_log stderr warn;
          events { worker_connections 512; }
          http {
            access_log off; #{temporary}
            upstream backend { server 127.0.0.1:#{backend_port}; keepalive 16; }
            #{http}
            server { listen 127.0.0.1:#{port}; #{conf} }
          }
        CONF
      end

      def start_puma(path, env, threads)
        unless File.directory?(path)
          return start(:puma, env:, chdir: File.dirname(path)) { |port| puma_command(port, threads, "-e", "production", path) }
        end

        with_unbundled_env do
          start(:puma, env: { "BUNDLE_GEMFILE" => File.join(path, "Gemfile") }.merge(env), chdir: path) do |port|
            directory_command(path, port, threads)
          end
        end
      end

      # A config/puma.rb binds to PORT itself, so a second binding would fail.
      def directory_command(dir, port, threads)
        config = File.join(dir, "config/puma.rb")
        bundle = [RbConfig.ruby, "-S", "bundle", "exec"]
        return ["env", "PORT=#{port}", *bundle, "puma", "-C", config] if File.exist?(config)

        puma_command(port, threads, "-e", "production", File.join(dir, "config.ru"), ruby: bundle)
      end

      def puma_command(port, threads, *arguments, ruby: [RbConfig.ruby, "-S"])
        ["env", "PORT=#{port}", *ruby, "puma", "-b", "tcp://127.0.0.1:#{port}", "-t", "#{threads}:#{threads}", *arguments]
      end

      def with_unbundled_env(&block) = defined?(Bundler) ? Bundler.with_unbundled_env(&block) : yield

      def in_process_puma(app, threads)
        require "puma"
        require "puma/server"
        puma = Puma::Server.new(app, nil, min_threads: threads, max_threads: threads, log_writer: Puma::LogWriter.null)
        port = puma.add_tcp_listener("127.0.0.1", 0).addr[1]
        thread = puma.run
        yield "http://127.0.0.1:#{port}"
      ensure
        puma&.stop(true)
        thread&.join
      end
    end
  end
end
