# frozen_string_literal: true

require "erb"
require "ipaddr"
require "uri"

module Castellan
  module CLI
    # Runs `castellan proxy`: prints the configuration of a reverse proxy in front of an application.
    #
    #   Castellan::CLI::ProxyCommand.new(%w[nginx config.ru --app http://127.0.0.1:9292]).call   # => 0
    #
    # The proxy caches what Cache-Control allows ({Resource.cache_control}) and accepts purges ({Purge}) from
    # `--purger`. With a file, the configuration has the paths of the resources that the application mounts. With
    # `--rest`, the existing application, only these or those of `--only` go to Castellan.
    class ProxyCommand < Command
      KINDS = %w[nginx varnish haproxy].freeze
      USAGE = "castellan proxy nginx|varnish|haproxy [config.ru | app.rb] [options] > FILE"
      # Values are inserted into configuration files, so they must not end a statement there.
      URL = %r{\Ahttp://(?:[\w.-]+|\[[\h:.]+\])(?::\d+)?/?\z}i
      PATH = %r{\A(?:/[\w.~-]+)+/?\z}
      ADDRESS = %r{\A[\h.:]+(?:/\d+)?\z}
      PORTS = 1..65_535
      # The proxy removes these fields: applications build URLs from them, but the cache key does not contain
      # them, so one client could change the URLs in the documents of others.
      UNKEYED = %w[Forwarded X-Forwarded-Host X-Forwarded-Port X-Forwarded-Prefix X-Forwarded-Scheme
                   X-Forwarded-Server X-Forwarded-Ssl X-Host X-Original-Host X-Original-URL X-Rewrite-URL].freeze
      # Varnish compares these fields with Vary, or adds them to its key; only in this spelling.
      NEGOTIATED = %w[Accept-Encoding Accept-Language X-Requested-With X-Forwarded-Proto Turbo-Frame HX-Request].freeze
      # Fields for which applications omit the layout of a page (turbo-rails without Vary). Such responses are not cached.
      FRAGMENTS = %w[Turbo-Frame HX-Request].freeze
      PURGERS = { "nginx" => :Refresh, "haproxy" => :Refresh, "varnish" => :Varnish }.freeze
      OWN_OPTIONS = { xkey: %w[varnish], listen: %w[nginx haproxy], dir: %w[nginx] }.freeze
      private_constant :OWN_OPTIONS, :KINDS, :URL, :PATH, :ADDRESS, :PORTS, :UNKEYED, :NEGOTIATED, :FRAGMENTS, :PURGERS

      def self.summary = "prints a configuration of nginx, Varnish or HAProxy in front of an application"

      private

      def run(kind = nil, file = nil, *others)
        raise WrongArguments, "write nginx, varnish or haproxy#{", not #{[kind, *file].join(" ")}" if kind}" unless KINDS.include?(kind)
        raise WrongArguments, "name one file, not #{[file, *others].join(" ")}" if others.any?

        check_options(kind, file)
        @places = []
        file ? redirected { declared(kind, mounted(file)) } : write_configuration(kind)
        0
      end

      def write_configuration(kind)
        @out.puts ERB.new(File.read(File.join(__dir__, "proxy_command", "#{kind}.erb")), trim_mode: "-").result(binding)
      end

      def check_options(kind, file)
        raise WrongArguments, "--only needs --rest, the URL of the application that answers everything else" if @only.any? && @rest.nil?
        raise WrongArguments, "--rest needs --only, the paths that go to Castellan, or the application's config.ru" \
          if @rest && @only.empty? && file.nil?
        raise WrongArguments, "--at needs the application's config.ru" if @at && file.nil?

        foreign = @own_options.find { |option| !OWN_OPTIONS.fetch(option).include?(kind) } or return
        raise WrongArguments, "--#{foreign} is for #{OWN_OPTIONS[foreign].join(" and ")} alone, not for #{kind}"
      end

      def mounted(file)
        load_doctor
        MountedApps.boot(file, environment: @environment, at: @at)
      end

      def declared(kind, mounted)
        @declared = true
        @err.puts "castellan proxy: #{mounted.notice}" if mounted.notice
        places = Places.new(mounted.to_a)
        @only = places.paths if @rest && @only.empty?
        @root = places.root
        @places = places.within(@only)
        check_only(places)
        mounted.to_a.filter_map { |_, app| app.purge }.uniq.each { |purge| check_purge(kind, purge) }
        write_configuration(kind)
      end

      # Only a warning, because the application may have routes of its own.
      def check_only(places)
        path = places.unserved(@only) or return
        @err.puts "castellan proxy: no resource is served at #{path}#{Nearest.hint(path, places.served)}"
      end

      # An application's own object may purge anything.
      def check_purge(kind, purge)
        fitting = Purge.const_get(PURGERS.fetch(kind))
        return if purge.proxies.any? { |proxy| proxy.is_a?(fitting) || !proxy.class.name.to_s.start_with?("Castellan::Purge::") }

        @err.puts "castellan proxy: the application purges with #{purge.proxies.map(&:class).join(", ")}, which does not purge #{kind}, " \
                  "so it keeps documents that have changed: add #{fitting}.new(url) to Castellan::Purge.new"
      end

      def options(parser)
        @own_options = []
        @app = "http://127.0.0.1:9292"
        @listen = 8080
        @only = []
        @purgers = %w[127.0.0.1 ::1]
        @dir = "/var/cache/castellan"
        @environment = "production"
        parser.on("--env NAME", "the environment to boot the file in (#{@environment})") { |name| @environment = name }
        parser.on("--at PATH", "where Castellan.app is mounted, if the command does not find it") do |path|
          @at = path == "/" ? "" : path!(path, "/api")
        end
        parser.on("--app URL", "the application of Castellan (#{@app})") { |url| @app = url(url) }
        parser.on("--only PATH,…", Array, "only these paths go to Castellan") do |paths|
          @only = list(paths, :path!)
        end
        parser.on("--rest URL", "the application for all other paths") { |url| @rest = url(url) }
        parser.on("--purger ADDRESS,…", Array, "addresses that may purge (#{@purgers.join(",")})") do |addresses|
          @purgers = list(addresses, :address!)
        end
        own_options(parser)
      end

      def own_options(parser)
        parser.on("--listen PORT", Integer, "the port of the proxy, nginx and HAProxy (#{@listen})") do |port|
          @own_options << :listen
          @listen = port!(port)
        end
        parser.on("--xkey", "purges Varnish with the vmod xkey, not with bans") do
          @own_options << :xkey
          @xkey = true
        end
        parser.on("--dir PATH", "where nginx keeps its files (#{@dir})") do |dir|
          @own_options << :dir
          @dir = path!(dir, "/var/cache/castellan")
        end
      end

      # OptionParser turns "" into [] and "a,,b" into ["a", nil, "b"].
      def list(texts, check)
        (texts.empty? ? [""] : texts).map { |text| send(check, text.to_s) }.uniq
      end

      def url(text)
        return text.chomp("/") if text.match?(URL) && PORTS.cover?(URI.parse(text).port)

        refuse(text, "write http, a host and a port, such as http://127.0.0.1:9292")
      rescue URI::InvalidURIError
        refuse(text, "not a URL")
      end

      def port!(number)
        PORTS.cover?(number) ? number : refuse(number, "write a port from 1 to 65535")
      end

      def path!(text, example = "/mail-logs")
        return text.chomp("/") if text.match?(PATH)

        refuse(text, "write a path of letters, digits and . _ ~ -, such as #{example}")
      end

      def address!(text)
        return refuse(text, "write an address or a network, such as 10.0.0.0/8") unless text.match?(ADDRESS)

        address = IPAddr.new(text)
        text.include?("/") ? "#{address}/#{address.prefix}" : address.to_s
      rescue IPAddr::Error
        refuse(text, "not an address or a network")
      end

      def refuse(value, reason)
        raise OptionParser::InvalidArgument, "#{value.inspect}: #{reason}"
      end

      # @return [Array<String>] the field's name with "-" or "_" in each place, which are the same for Rack
      def spellings(name)
        first, *others = name.split("-")
        others.reduce([first]) { |names, part| names.flat_map { |start| ["#{start}-#{part}", "#{start}_#{part}"] } }
      end

      def host(url) = URI.parse(url).host
      def port(url) = URI.parse(url).port
    end
  end
end

require_relative "mounted_apps"
require_relative "proxy_command/places"
require_relative "proxy_command/locations"
