# frozen_string_literal: true

require "castellan/cli"
require "fileutils"
require "stringio"
require "tmpdir"

module Castellan
  module Demo
    # Runs what some steps need besides the application: Redis, and nginx in front of it.
    #
    #   programs = Programs.new(database)
    #   programs.missing(["nginx"])   # => ["nginx"] if it is not installed
    #   programs.around(%w[redis nginx], example) { |url| … }   # url is nginx's
    #
    # The configuration of nginx is that of `castellan proxy nginx`. Both keep their files in a temporary
    # directory.
    class Programs
      NAMES = { "redis" => "redis-server", "nginx" => "nginx" }.freeze
      FOLDERS = ["/usr/sbin", "/usr/local/sbin"].freeze # not in the PATH of a user on Debian
      private_constant :NAMES, :FOLDERS

      # @param database [Database]
      def initialize(database)
        @database = database
      end

      # @param needs [Array<String>] of redis, nginx and postgresql
      # @return [Array<String>] what to install or to set
      def missing(needs)
        needs.filter_map do |need|
          if need == "postgresql" then "DATABASE_URL=postgres://…" unless @database.url.to_s.start_with?("postgres")
          else NAMES.fetch(need) unless path(need)
          end
        end
      end

      # Serves the example with these programs during the block.
      # @param needs [Array<String>] see {#missing}
      # @param example [Example] gets REDIS_URL and PROXY_URL
      # @yieldparam url [String] of the proxy if there is one, else of the application
      def around(needs, example, &block)
        Dir.mktmpdir("castellan-programs") do |directory|
          with_redis(needs.include?("redis"), directory) do |redis|
            example = example.with("REDIS_URL" => redis)
            next with_nginx(example, directory, &block) if needs.include?("nginx")

            example.serve(&block)
          end
        end
      end

      private

      def with_redis(needed, directory)
        return yield unless needed

        run("redis", Child.free_port, directory) { |port|
          ["--port", port.to_s, "--bind", "127.0.0.1", "--save", "", "--dir", directory]
        }.then { |pid, port| while_running(pid) { yield "redis://127.0.0.1:#{port}/0" } }
      end

      # The application has the URL of the proxy before the proxy starts, which needs that of the application.
      def with_nginx(example, directory)
        port = Child.free_port
        example.with("PROXY_URL" => "http://127.0.0.1:#{port}").serve do |url|
          pid, = run("nginx", port, directory) do
            File.write(File.join(directory, "nginx.conf"), nginx(url, port, directory))
            ["-p", directory, "-c", "nginx.conf", "-e", "stderr"]
          end
          while_running(pid) { yield "http://127.0.0.1:#{port}" }
        end
      end

      def run(name, port, directory)
        log = File.join(directory, "#{name}.log")
        pid = Child.start({}, [path(name), *yield(port)], out: log, err: %i[child out])
        Child.wait_for(port, pid, NAMES.fetch(name), log)
        started = [pid, port]
      ensure
        Child.stop(pid) unless started # also after Ctrl-C
      end

      def while_running(pid)
        yield
      ensure
        Child.stop(pid)
      end

      def nginx(url, port, directory)
        temporary = %w[client_body proxy fastcgi uwsgi scgi].map { |kind| "#{kind}_temp_path #{kind};" }.join(" ")
        "#{"user root; " if Process.uid.zero?}daemon off; worker_processes 1; pid nginx.pid; error_log stderr warn;\n" \
          "events {}\nhttp {\naccess_log off; #{temporary}\n#{printed(url, port, directory)}}\n"
      end

      def printed(url, port, directory)
        out = StringIO.new
        err = StringIO.new
        arguments = ["nginx", "--app", url, "--listen", port.to_s, "--dir", File.join(directory, "cache")]
        status = CLI.call(["proxy", *arguments], out: out, err: err)
        status.zero? ? out.string : raise(Error, err.string)
      end

      def path(name)
        [*ENV["PATH"].to_s.split(File::PATH_SEPARATOR), *FOLDERS].map { |folder| File.join(folder, NAMES.fetch(name)) }
                                                                 .find { |file| File.executable?(file) && !File.directory?(file) }
      end
    end
  end
end
