# frozen_string_literal: true

require_relative "errors"
require_relative "clock"

module Castellan
  # Removes documents from the proxies and CDNs in front of the application when a record in them has changed.
  #
  #   PURGE = Castellan::Purge.new(ActiveRecord::Base, Castellan::Purge::Varnish.new("http://127.0.0.1:6081"))
  #
  #   run Castellan.app {                      # config.ru
  #     resource PostResource                  # cache_control s_maxage: 600
  #     purge PURGE                            # documents name their records in Surrogate-Key and Cache-Tag
  #   }
  #   PURGE.install(PostResource)              # once, in a migration: triggers
  #   PURGE.start                              # in one process: a thread that sends what the triggers note
  #
  # A trigger notes each changed row in the table `castellan_purges`, in the transaction that changes it, whoever changes it. A note is
  # deleted when every proxy has taken it, so nothing is lost while a proxy is away. A document under way during a change may be stored
  # after the purge, so each purge is sent once more after `again_after` seconds.
  class Purge
    # A proxy did not take a purge.
    class Error < Castellan::Error; end

    # @return [Array<#purge>]
    attr_reader :proxies

    # @param source [Class, Object] ActiveRecord::Base or a subclass, or a Sequel::Database
    # @param proxies [#purge, Array<#purge>] {Varnish}, {Refresh} (nginx, HAProxy), {Fastly}, {Cloudflare}, or an
    #   object with `purge(tags)` that raises when it failed
    # @param again_after [Numeric, nil] seconds after which a purge is sent once more; nil: never
    # @param log [#call, nil] called with a line when a proxy fails; default standard error
    # @raise [ConfigurationError]
    def initialize(source, proxies, again_after: 1, log: nil)
      @proxies = (proxies.is_a?(Array) ? proxies.dup : [proxies]).freeze
      wrong = @proxies.reject { |proxy| proxy.respond_to?(:purge) }
      refuse(wrong.empty? ? "an empty Array" : wrong.map(&:inspect).join(", ")) unless wrong.empty? && @proxies.any?

      @outbox = Outbox.new(source)
      @again_after = again_after
      @log = log || ->(line) { warn(line) }
      @noting = @proxies.grep(Refresh)
      @noting.each { |proxy| proxy.keep_in(@outbox) }
    end

    # Installs the triggers of the resources' tables, and of the tables that their relationships and paths read. Idempotent; on SQLite
    # install again after a column was added.
    # @param resources [Array<Class>]
    # @param tables [Array<String>] others that their scopes and filters read
    def install(*resources, tables: [])
      @outbox.install({ **tables.to_h { |table| [table, []] }, **Tags.tables(resources.map(&:definition)) })
    end

    # Removes the triggers, and the tables of the notes.
    # @param resources [Array<Class>] as given to {#install}
    def uninstall(*resources, tables: [])
      @outbox.uninstall(tables + Tags.tables(resources.map(&:definition)).keys)
    end

    # @param rendering [Document::Rendering]
    # @param env [Hash] Rack's environment
    # @param vary [String] the header field Vary of the response
    # @return [Boolean] whether every change of the document is noted: its tables are known, each has its trigger, and its URL can be noted
    def covers?(rendering, env, vary)
      tables = rendering.tables
      !tables.nil? && @outbox.notes?(tables) && (@noting.empty? || (@noting.all? { |proxy| proxy.notes?(env, vary) } && @outbox.room?))
    end

    # @param rendering [Document::Rendering]
    # @param env [Hash] Rack's environment
    # @param vary [String] the header field Vary of the response
    # @return [Hash{String => String}] the header fields that name the records
    def headers(rendering, env, vary)
      tags = Tags.digests(Tags.new(rendering).to_a)
      @noting.each { |proxy| proxy.note(tags, env, vary) }
      { "surrogate-key" => tags.join(" "), "cache-tag" => tags.join(",") }
    end

    # Starts the thread that sends purges. Call it in one process, after a fork.
    # @return [Worker]
    def start
      @worker ||= Worker.new(@outbox, @proxies, again_after: @again_after, log: @log).tap(&:start)
    end

    # Stops the thread.
    def stop
      @worker&.stop
      @worker = nil
    end

    # Sends what is noted now, in this thread.
    # @return [Integer] how many notes were sent
    # @raise [Error] if a proxy fails; the notes stay
    def call
      Worker.new(@outbox, @proxies, again_after: nil, log: @log).send_noted
    end

    private

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
