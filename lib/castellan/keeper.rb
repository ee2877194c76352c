# frozen_string_literal: true

require_relative "call_site"
require_relative "cache"
require_relative "versions"

module Castellan
  # Keeps documents between requests: composes versions, cache and store, as `document.rb` composes what renders.
  #
  #   Castellan.keep(store: Castellan::Store::MemoryStore.new, versions: Castellan::Versions::ExactVersions.new(ActiveRecord::Base))
  #
  # The version is read before the data, so kept bytes can only be newer than their key, and it stands in the key, so nothing is ever
  # invalidated: what changed has another key. Where the tables of a document cannot be known, or their version is not kept, the
  # document is written anew each time. What fails in a store is a miss.
  class Keeper
    # @param store [Object] see {Store}
    # @param versions [#current] see {Versions}
    # @param revision [String, nil] of the application's code, whose bytes alone are served; default: see {Revision}
    # @param log [#call, nil] told of a store that fails
    def initialize(store:, versions:, revision: nil, log: nil)
      @store = store
      @versions = versions
      @revision = Revision.new(revision)
      @log = log
      @layers = {}
      @lock = Mutex.new
    end

    # Reads the source of a resource, of which its keys are made, while it is what this process runs: with a first document it might be
    # that of a later deployment.
    # @param definition [Resource::Definition]
    def learn(definition)
      return unless definition.caching

      @revision.to_s
      SourceDigest.of(definition)
    end

    # Serves nothing more of what was written so far: the code was reloaded.
    def renew_revision
      @revision.renew
    end

    # @param document [Document]
    # @return [String, nil] a key of everything the bytes depend on, but for the viewer's own values; nil when that cannot be known
    def basis(document)
      return if Castellan.off?

      source = SourceDigest.of(document.definition) or return
      return if document.custom_code.obstacles.any?

      tables = document.tables or return
      kept = kept_of(document, source, tables)
      version = @versions.current(kept.dependencies) or return
      kept.key(version, document.values)
    end

    # @param basis [String]
    # @return [String] an entity tag that did not cost the body
    def etag(basis)
      %("#{basis.delete_prefix(Cache::Key::PREFIX)}")
    end

    # @param document [Document]
    # @param basis [String]
    # @return [Serialize::Output]
    def fetch(document, basis)
      bytes = layer(document.definition.caching.expires_in).fetch(basis) { pack(document.write) }
      unpack(bytes) || document.write
    end

    # @param document [Document] of tables that are known
    # @return [String, nil] why nothing of it is kept now
    def reason(document)
      if Castellan.off? then "CASTELLAN=off"
      elsif SourceDigest.of(document.definition).nil? then "a class without a name is not told from its like in another process"
      elsif basis(document).nil? then "the version of a table cannot be told (is its trigger there?)"
      end
    end

    private

    # By the statement, because a scope that is fixed has the same one in every request.
    def kept_of(document, source, tables)
      statement = document.statement
      revision = @revision.to_s
      made = -> { KeptStatement.new(tables, [Castellan::VERSION, revision, source, statement, *document.shape]) }
      kept = document.plan.derive([:kept_statements, revision]) { Plan::BoundedCache.new }.fetch(statement, &made)
      kept.of?(tables) ? kept : made.call
    end

    def pack(output)
      holes = output.holes.each_slice(3).map { |offset, hole, id| [offset, "#{hole} #{id}"] }
      Cache::Envelope.new(body: output.body, holes: holes).dump
    end

    def unpack(bytes)
      envelope = Cache::Envelope.load(bytes) or return
      holes = envelope.offsets.zip(envelope.ids).flat_map do |offset, text|
        hole, id = text.force_encoding(Encoding::UTF_8).split(" ", 2)
        [offset, hole.to_i, id]
      end
      Serialize::Output.new(envelope.body.force_encoding(Encoding::UTF_8), holes)
    end

    def layer(expires_in)
      @lock.synchronize { @layers[expires_in] ||= Cache::DocumentLayer.new(store: @store, ttl: expires_in, log: @log) }
    end
  end
end

require_relative "keeper/kept_statement"
require_relative "keeper/source_digest"
require_relative "keeper/revision"
