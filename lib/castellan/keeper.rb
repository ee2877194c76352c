# frozen_string_literal: true

require_relative "call_site"
require_relative "document"
require_relative "cache"
require_relative "versions"

module Castellan
  # Keeps documents between requests, in a store, under keys that contain the version of the tables.
  #
  #   Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: Castellan::Versions::ExactVersions.new(ActiveRecord::Base))
  #
  # The version is read before the data and is part of the key, so kept bytes are never older than their key, and nothing is ever
  # invalidated. Where the tables of a document or their version are not known, the document is written anew each time.
  class Keeper
    # @param store [Object] see {Store}
    # @param versions [#current] see {Versions}
    # @param revision [String, nil] of the application's code, a part of every key; default: see {Revision}
    # @param log [#call, nil] receives a line when the store fails
    def initialize(store:, versions:, revision: nil, log: nil)
      @store = store
      @versions = versions
      @revision = Revision.new(revision)
      @log = log
      @layers = {}
      @lock = Mutex.new
    end

    # Reads the source of a resource while it is what this process has loaded. Called when the resource is checked, at boot; with the
    # first document it might be the source of a later deployment.
    # @param definition [Resource::Definition]
    def learn(definition)
      return unless definition.caching

      @revision.to_s
      SourceDigest.of(definition)
    end

    # Stops serving what was written so far, because the code was reloaded.
    def renew_revision
      @revision.renew
    end

    # @param rendering [Document::Rendering]
    # @return [String, nil] a key of everything the bytes depend on, except the viewer's own values; nil where that is not known
    def key(rendering)
      return if Castellan.off?

      source = SourceDigest.of(rendering.definition) or return
      return if rendering.custom_code.obstacles.any?

      tables = rendering.tables or return
      kept = kept_statement(rendering, source, tables)
      version = @versions.current(kept.dependencies) or return
      kept.key(version, rendering.values)
    end

    # @param key [String]
    # @return [String] an entity tag
    def etag(key)
      %("#{key.delete_prefix(Cache::Key::PREFIX)}")
    end

    # @param rendering [Document::Rendering]
    # @param key [String]
    # @return [Document::Rendering::Written]
    def fetch(rendering, key)
      bytes = layer(rendering.definition.caching.expires_in).fetch(key) { dump(rendering.write) }
      load(bytes) || rendering.write
    end

    # @param rendering [Document::Rendering]
    # @return [String, nil] why the document is not kept at the moment
    def reason(rendering)
      if Castellan.off? then "CASTELLAN=off"
      elsif SourceDigest.of(rendering.definition).nil? then "a class without a name cannot be told from another one in another process"
      elsif key(rendering).nil? then "the version of a table cannot be read (is its trigger installed?)"
      end
    end

    private

    # Kept by the statement, which is the same in every request where the scope is fixed.
    def kept_statement(rendering, source, tables)
      statement = rendering.statement
      plan = rendering.plan
      revision = @revision.to_s
      make = -> { KeptStatement.new(tables, [VERSION, revision, source, statement, rendering.definition.name, plan.signature]) }
      kept = plan.derive([:kept_statements, revision]) { BoundedCache.new }.fetch(statement, &make)
      kept.of?(tables) ? kept : make.call
    end

    def dump(written)
      holes = written.output.holes.each_slice(3).map { |offset, hole, id| [offset, "#{hole} #{id}"] }
      Cache::Envelope.new(body: written.output.body, found: written.found, holes: holes).dump
    end

    def load(bytes)
      envelope = Cache::Envelope.load(bytes) or return
      holes = envelope.offsets.zip(envelope.ids).flat_map do |offset, text|
        hole, id = text.force_encoding(Encoding::UTF_8).split(" ", 2)
        [offset, hole.to_i, id]
      end
      Document::Rendering::Written.new(Serialize::Output.new(envelope.body.force_encoding(Encoding::UTF_8), holes), envelope.found)
    end

    def layer(expires_in)
      @lock.synchronize { @layers[expires_in] ||= Cache::DocumentLayer.new(store: @store, ttl: expires_in, log: @log) }
    end
  end
end

require_relative "keeper/kept_statement"
require_relative "keeper/source_digest"
require_relative "keeper/revision"
