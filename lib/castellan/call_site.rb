# frozen_string_literal: true

module Castellan
  begin
    require "castellan/castellan_ext"
  rescue LoadError
    nil # without a C compiler, CallSite.current is written in Ruby and slower
  end

  # Finds the current line of the application: the innermost frame outside of Ruby, gems and Castellan.
  #
  #   site = CallSite.current        # => 33554441; with the C extension it allocates no object
  #   CallSite.location(site)        # => "app/controllers/users_controller.rb:9"
  #   CallSite.stack                 # => ["app/models/user.rb:4:in `name'", …], only frames of the application
  #
  # A site is an Integer, so that a hot path allocates nothing; {location} formats it. Paths stay in memory
  # for the life of the process. If there is no application frame (an engine in installed gems), the site is
  # the innermost frame of a gem that is not a framework; {application_gems=} lists gems that count as the
  # application.
  #
  # `eval`ed code belongs to the file that it is given, or inside a method to the file of the method (the Ruby
  # implementation differs there). For an exception, use its backtrace.
  module CallSite
    LINE_BITS = 24
    LINE_MASK = (1 << LINE_BITS) - 1
    CONSOLES = ["-e", "(irb)", "(pry)"].freeze
    FIRST_LOOK = 32
    GAP = 32
    LOCK = Mutex.new
    # Gems that call the application, or that it calls for queries, responses and jobs.
    FRAMEWORKS = /\A(?:
      rails | railties | (?:active|action)[a-z_]+ | (?:rack|sequel|sinatra|roda|hanami|grape|dry|pry|rspec|minitest)(?:[-_].+)? |
      (?:sidekiq|kaminari)(?:[-_].+)? | puma | falcon | unicorn | pitchfork | thin | webrick | rackup | good_job | solid_[a-z]+ | rake |
      thor | irb | bundler | bootsnap | zeitwerk | concurrent-ruby | i18n | tzinfo | globalid | warden | devise |
      jsonapi-.+ | fast_jsonapi | panko_serializer | alba | blueprinter | jbuilder | rabl | oj | json | graphql(?:-.+)? |
      will_paginate | pagy | ransack | cancancan | pundit | friendly_id | acts_as_list | awesome_nested_set | paranoia |
      (?:sprockets|sentry|opentelemetry|airbrake|scout|skylight)(?:[-_].+)? | propshaft | web-console | request_store |
      newrelic_rpm | ddtrace | datadog | appsignal | rollbar | bugsnag | honeybadger | elastic-apm |
      pg | sqlite3 | mysql2 | trilogy | redis.* | connection_pool | dalli | mini_sql | bullet | prosopite | castellan
    )\z/x
    GEM = %r{.*/gems/([^/]+?)-(?:\d[^/]*|\h{12})/}m
    private_constant :LOCK, :FRAMEWORKS, :GEM
    @application_gems = [].freeze
    @paths = [nil] # the index is the number of a path; 0 means "not the application"
    @numbers = {}
    @labels = {} # site => method name; only without the C extension
    @roots = nil

    class << self
      # @param site [Integer, nil]
      # @return [String, nil] "path:line", relative to {root} if the file is inside
      def location(site)
        site && "#{relative(path(site))}:#{line(site)}"
      end

      # @return [String] the path, as in Ruby's backtraces
      def path(site) = @paths.fetch(site >> LINE_BITS)

      # @return [Integer]
      def line(site) = site & LINE_MASK

      # @return [String, nil] the source code of the line, stripped
      def source(site)
        file = File.expand_path(path(site), root)
        return unless File.file?(file)

        File.foreach(file, encoding: "UTF-8").with_index(1) { |text, number| return text.scrub.strip if number == line(site) }
      end

      # @return [Array<String>] all frames of the application, innermost first
      def stack
        caller_locations(1).select { |frame| number(frame.path.to_s).positive? }
                           .map { |frame| "#{relative(frame.path)}:#{frame.lineno}:in `#{frame.label}'" }
      end

      # @return [String] the directory of the application; paths are relative to it
      def root = roots.first

      # @param directory [#to_s] e.g. `Rails.root`
      def root=(directory)
        @roots = [directory.to_s, File.realpath(directory.to_s)].uniq.freeze
      end

      # @return [Array<String>] names of gems that count as the application; `*` is a wildcard
      attr_reader :application_gems

      # Set this at boot, before the first query, because files that were classified before are not classified
      # again.
      # @param names [Array<String>] e.g. `%w[spree_core spree_api]` or `%w[spree*]`; in Rails
      #   `config.castellan.application_gems`
      # @raise [ConfigurationError] unless `names` is an Array of Strings
      def application_gems=(names)
        unless names.is_a?(Array) && names.all?(String)
          raise ConfigurationError, "application_gems must be an Array of names, such as %w[spree_core spree_api], got #{names.inspect}"
        end

        @application_gems = names.map(&:dup).freeze
        LOCK.synchronize { @numbers.delete_if { |_, number| number <= 0 } }
      end

      # @return [Boolean] whether code at this path belongs to the application
      def application?(path)
        return true if CONSOLES.include?(path)
        return File.file?(path) && !path.start_with?("(") unless path.start_with?("/")

        !path.start_with?(*foreign) || application_gem?(path)
      end

      # Classifies a path. The C extension calls this once for each path.
      # @return [Integer] positive for the application, negative for a gem that is not a framework, else 0
      def number(path)
        @numbers[path] || LOCK.synchronize do
          @numbers[path] ||= if application?(path) then enter(path)
                             elsif library?(path) then -enter(path)
                             else 0
                             end
        end
      end

      # @return [Integer, nil] implements {current} without the C extension
      def current_in_ruby
        from = 1
        library = nil
        while (frames = caller_locations(from, FIRST_LOOK)) && !frames.empty?
          frames.each do |frame|
            number = number(frame.path.to_s)
            return (number << LINE_BITS) | frame.lineno if number.positive?

            library ||= (-number << LINE_BITS) | frame.lineno if number.negative?
          end
          from += FIRST_LOOK
        end
        library
      end

      # Formats a site like a backtrace.
      # @return [String] "path:line:in `name'"; the last method that was seen at the site, without "block in"
      def frame(site) = "#{location(site)}:in `#{label(site)}'"

      # @param limit [Integer]
      # @return [Array<Integer>] implements {frames} without the C extension
      def frames_in_ruby(limit)
        sites = []
        foreign = 0
        caller_locations(1).each do |frame|
          site = site_of(frame)
          foreign = site ? 0 : foreign + 1
          break if sites.size >= limit || (foreign > GAP && sites.any?)
          next if site.nil? || site == sites.last

          @labels[site] = frame.base_label.dup.freeze
          sites << site
        end
        sites.freeze
      end

      # @!method frames(limit)
      #   The sites of the application's frames, innermost first; a block and its method on one line are one
      #   frame. Stops after GAP consecutive frames of others, because only the application's middlewares are
      #   further out. Use {frame} to format a site.
      #   @param limit [Integer]
      #   @return [Array<Integer>] at most `limit` sites
      # @!method label(site)
      #   @return [String, nil] the method at a site from {frames}
      # @!method current
      #   @return [Integer, nil] the site of the innermost application frame; nil without one
      if Castellan.const_defined?(:NativeCallSite)
        include NativeCallSite
      else
        alias current current_in_ruby
        alias frames frames_in_ruby

        def label(site) = @labels[site]
      end

      private

      def site_of(frame)
        number = number(frame.path.to_s)
        (number << LINE_BITS) | frame.lineno if number.positive?
      end

      # Whether the path is a file of a gem; generated files and binstubs do not count.
      def library?(path)
        name = path[GEM, 1]
        !name.nil? && !FRAMEWORKS.match?(name) && !path.start_with?(*own)
      end

      def application_gem?(path)
        return false if @application_gems.empty? || path.start_with?(*own)

        name = path[GEM, 1] and @application_gems.any? { |pattern| File.fnmatch(pattern, name) }
      end

      def enter(path)
        @paths << path
        @paths.size - 1
      end

      def roots = @roots ||= [Dir.pwd, File.realpath(Dir.pwd)].uniq.freeze

      def relative(path)
        inside = roots.find { |root| path.start_with?("#{root}/") }
        inside ? path.delete_prefix("#{inside}/") : path.delete_prefix("./")
      end

      def foreign
        @foreign ||= [*gem_directories, *ruby_directories].map { |directory| "#{directory.chomp("/")}/" }.concat(own).uniq.freeze
      end

      # Castellan's own directories, wherever the gem is installed.
      def own = @own ||= %W[#{__dir__}/ #{File.expand_path("../../exe", __dir__)}/].freeze

      def gem_directories
        defined?(Gem) ? [*Gem.path, *Gem.path.map { |path| File.expand_path(path) }, Gem.bindir] : []
      end

      def ruby_directories
        RbConfig::CONFIG.values_at("rubylibprefix", "rubylibdir", "sitedir", "vendordir", "bindir").compact.reject(&:empty?)
      end
    end
  end
end
