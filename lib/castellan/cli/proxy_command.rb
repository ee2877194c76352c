# frozen_string_literal: true

require "erb"
require "uri"

module Castellan
  module CLI
    # Runs `castellan proxy`: prints the configuration of a reverse proxy in front of an application.
    #
    #   Castellan::CLI::ProxyCommand.new(%w[nginx --app http://127.0.0.1:9292]).call   # => 0
    #
    # The proxy caches what Cache-Control allows ({Resource.cache_control}) and accepts purges ({Purge}) from
    # `--purger`. With `--only`, these paths go to Castellan and all others to `--rest`, the existing
    # application.
    class ProxyCommand < Command
      KINDS = %w[nginx varnish haproxy].freeze
      USAGE = "castellan proxy nginx|varnish|haproxy [options] > FILE"
      private_constant :KINDS

      def self.summary = "prints a configuration of nginx, Varnish or HAProxy in front of an application"

      private

      def run(kind = nil, *others)
        raise WrongArguments, "write nginx, varnish or haproxy#{", not #{[kind, *others].join(" ")}" if kind}" \
          unless KINDS.include?(kind) && others.empty?
        raise WrongArguments, "--only needs --rest, the URL of the application that answers everything else" if @only.any? && @rest.nil?

        @out.puts ERB.new(File.read(File.join(__dir__, "proxy_command", "#{kind}.erb")), trim_mode: "-").result(binding)
        0
      end

      def options(parser)
        @app = "http://127.0.0.1:9292"
        @listen = 8080
        @only = []
        @purgers = %w[127.0.0.1 ::1]
        @dir = "/var/cache/castellan"
        parser.on("--app URL", "the application of Castellan (#{@app})") { |url| @app = url(url) }
        parser.on("--listen PORT", Integer, "the port of the proxy, nginx and HAProxy (#{@listen})") { |port| @listen = port }
        parser.on("--only PATH,…", Array, "only these paths go to Castellan") { |paths| @only = paths.map { |path| path!(path) } }
        parser.on("--rest URL", "the application that answers all other paths") { |url| @rest = url(url) }
        parser.on("--purger ADDRESS,…", Array, "who may purge (#{@purgers.join(",")})") { |all| @purgers = all.map { |one| address!(one) } }
        parser.on("--dir PATH", "where nginx keeps its files (#{@dir})") { |dir| @dir = path!(dir) }
      end

      def url(text)
        uri = URI.parse(text)
        return text.chomp("/") if uri.is_a?(URI::HTTP) && uri.host && uri.path.delete("/").empty?

        raise OptionParser::InvalidArgument, "#{text}: write a URL without a path, such as http://127.0.0.1:9292"
      rescue URI::InvalidURIError
        raise OptionParser::InvalidArgument, "#{text} is no URL"
      end

      # Rejects values that would end the configuration statement in which they are inserted.
      def path!(text)
        return text.chomp("/") if text.match?(%r{\A/[\w./~%-]+\z})

        raise OptionParser::InvalidArgument, "#{text}: write a path, such as /mail-logs"
      end

      def address!(text)
        return text if text.match?(%r{\A[\h.:]+(?:/\d+)?\z})

        raise OptionParser::InvalidArgument, "#{text}: write an address or a network, such as 10.0.0.0/8"
      end

      def host(url) = URI.parse(url).host
      def port(url) = URI.parse(url).port
    end
  end
end
