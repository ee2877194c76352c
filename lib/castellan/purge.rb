# frozen_string_literal: true

require_relative "errors"
require_relative "clock"
require_relative "option_check"
require_relative "store"

module Castellan
  # Removes documents from proxies and CDNs when one of their records changes.
  #
  #   PURGE = Castellan::Purge.new(ActiveRecord::Base, Castellan::Purge::Varnish.new("http://127.0.0.1:6081"))
  #
  #   run Castellan.app {                      # config.ru
  #     resource PostResource                  # cache_control s_maxage: 600
  #     purge PURGE                            # documents name their records in Surrogate-Key and Cache-Tag
  #   }
  #   PURGE.install(PostResource)              # once, in a migration: triggers
  #   PURGE.start                              # in one process: threads that send the triggers' notes
  #
  # A trigger writes a note for each changed row into the table `castellan_purges`, in the transaction of the
  # change, even if another program changes the row. A note is deleted after every proxy has accepted it, so
  # no purge is lost while a proxy is down. A proxy may receive a document during a change and store it after
  # the purge, so each purge is sent once more after `again_after` seconds.
  class Purge
    # Raised if a proxy does not accept a purge.
    class Error < Castellan::Error
      # @return [Array<String>] those of the tags that it has accepted
      attr_reader :accepted

      # @return [Integer, nil] seconds after which it takes further requests
      attr_reader :retry_after

      def initialize(message = nil, accepted: [], retry_after: nil)
        super(message)
        @accepted = accepted
        @retry_after = retry_after
      end
    end

    UNNOTED = { "cache-control" => "public, no-cache", "cdn-cache-control" => "no-cache" }.freeze
    private_constant :UNNOTED

    # @return [Array<#purge>] the proxies and CDNs
    attr_reader :proxies

    # @param source [Class, Object] ActiveRecord::Base or a subclass, or a Sequel::Database
    # @param proxies [#purge, Array<#purge>] {Varnish}, {Refresh} (nginx, HAProxy), {Fastly}, {Cloudflare}, or
    #   an object with `purge(tags)` that raises on failure
    # @param again_after [Numeric, nil] seconds after which a purge is sent once more; nil: never
    # @param log [#call, nil] called with a line when a proxy fails or documents cannot be purged; default: standard error
    # @raise [ConfigurationError] if an option is invalid, there is no proxy, or one does not respond to `purge`
    def initialize(source, proxies, again_after: 1, log: nil)
      @proxies = (proxies.is_a?(Array) ? proxies.dup : [proxies]).freeze
      wrong = @proxies.reject { |proxy| proxy.respond_to?(:purge) }
      refuse(wrong.empty? ? "an empty Array" : wrong.map(&:inspect).join(", ")) unless wrong.empty? && @proxies.any?

      @outbox = Outbox.new(source)
      @again_after = again_after && OptionCheck.seconds(self.class, :again_after, again_after, 1)
      @log = OptionCheck.log(self.class, log) || ->(line) { warn(line) }
      @untriggered = []
      @noting = @proxies.grep(Refresh)
      @noting.each { |proxy| proxy.keep_in(@outbox) }
    end

    # Installs triggers on the resources' tables and on those that their relationships and paths read.
    #
    # Idempotent. On SQLite, call it again after adding a column. Each table has a transaction of its own, unless there is
    # one already, as in a migration without `disable_ddl_transaction!`.
    # @param resources [Array<Class>] one by one or as an Array
    # @param tables [Array<String>] other tables that the resources' scopes and filters read
    # @raise [ConfigurationError] without resources and tables
    def install(*resources, tables: [])
      raise ConfigurationError, "Purge#install needs resources or tables:, such as PURGE.install(PostResource)" \
        if resources.empty? && tables.empty?

      @outbox.install({ **tables.to_h { |table| [table, []] }, **Tags.tables(resources.flatten.map(&:definition)) })
    end

    # Removes the triggers, and drops the tables `castellan_purges` and `castellan_urls`.
    # @param resources [Array<Class>] those passed to {#install}
    # @param tables [Array<String>] those passed to {#install}
    def uninstall(*resources, tables: [])
      @outbox.uninstall(tables + Tags.tables(resources.flatten.map(&:definition)).keys)
    end

    # @param rendering [Document::Rendering]
    # @param env [Hash] Rack's environment
    # @param vary [String] the header field Vary of the response
    # @param further [Array<String>] further tables on which the response depends
    # @return [Boolean] whether triggers note every change of the document: it is of the default shard, its tables are
    #   known, each has a trigger, and its URL can be stored if a proxy needs it
    def covers?(rendering, env, vary, further: [])
      tables = rendering.tables
      return false if tables.nil? || !@noting.all? { |proxy| proxy.notes?(env, vary) }

      noted { default_shard? && all_triggers?(@outbox.without_triggers(tables | further)) && (@noting.empty? || @outbox.room?) }
    end

    # @param rendering [Document::Rendering]
    # @param env [Hash] Rack's environment
    # @param vary [String] the header field Vary of the response
    # @param further [Array<String>] further tags
    # @return [Hash{String => String}] the header fields with the tags of the records; "no-cache" if the URL cannot be noted
    def headers(rendering, env, vary, further: [])
      tags = Tags.digests(Tags.new(rendering).to_a | further)
      return UNNOTED.dup unless noted { @noting.each { |proxy| proxy.note(tags, env, vary) } }

      @unnoted = false
      { "surrogate-key" => tags.join(" "), "cache-tag" => tags.join(",") }
    end

    # Starts the threads that send purges, one for each proxy. Call it in one process, after a fork.
    # @return [Worker]
    def start
      @worker ||= Worker.new(@outbox, @proxies, again_after: @again_after, log: @log).tap(&:start)
    end

    # Stops the threads.
    def stop
      @worker&.stop
      @worker = nil
    end

    # Sends the current notes, in this thread.
    # @return [Integer] number of notes sent
    # @raise [Error] if a proxy fails; its notes stay in the table
    def call
      Worker.new(@outbox, @proxies, again_after: nil, log: @log).send_noted
    end

    private

    def default_shard?
      return true if @outbox.default?

      @log.call("castellan: documents of other shards are \"no-cache\", because only purges of the default shard are sent") unless @sharded
      @sharded = true
      false
    end

    def all_triggers?(missing)
      return true if missing.empty?

      added = missing - @untriggered
      @untriggered |= added
      if added.any?
        @log.call("castellan: documents are \"no-cache\", because these tables have no triggers for purges: #{added.join(", ")}; " \
                  "call PURGE.install with their resources (or tables:) in a migration")
      end
      false
    end

    # The tables may be gone (a migration has removed them), or the database read-only: a reader needs neither.
    def noted
      yield
    rescue StandardError => error
      unless @unnoted
        @log.call("castellan: what a purge needs cannot be noted, so documents are \"no-cache\": #{error.message.lines.first&.chomp}")
      end
      @unnoted = true
      false
    end

    def refuse(got)
      raise ConfigurationError, "Purge.new needs one proxy or an Array of them, such as " \
                                "Castellan::Purge::Varnish.new(\"http://127.0.0.1:6081\") or an object with purge(tags); got #{got}"
    end
  end
end

require_relative "purge/tags"
require_relative "purge/triggers"
require_relative "purge/outbox"
require_relative "purge/worker"
require_relative "purge/middleware"
require_relative "purge/varnish"
require_relative "purge/refresh"
require_relative "purge/fastly"
require_relative "purge/cloudflare"
