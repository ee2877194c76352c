# frozen_string_literal: true

require_relative "version"
require_relative "config"
require_relative "recording"
require_relative "resource"
require_relative "plan"
require_relative "rows"
require_relative "serialize"

module Castellan
  # The answer to one request. Reads nothing until its bytes, its status or its validators are needed.
  #
  #   document = UserResource.document(User.active, query: params, viewer: current_user)
  #   document.to_json                       # => the bytes
  #   render json: document                  # Rails; Rack: [document.status, document.headers, document]
  #   render json: document if stale?(**document.validators)
  #
  # A document belongs to one request and one thread. A wrong query raises {BadRequest} when the document is made, before any SQL.
  class Document
    MEDIA_TYPES = { json_api: "application/vnd.api+json", nested: "application/json; charset=utf-8" }.freeze

    class << self
      # Compares documents with those of the models, once {Verify} is loaded.
      # @return [#current, nil]
      attr_accessor :verifier

      # @return [Verify::Verification, nil] inside `Castellan.verify`
      def verification
        @verifier&.current
      end
    end

    # @return [Rendering] for Castellan's own layers
    attr_reader :rendering

    # @param rendering [Rendering]
    def initialize(rendering)
      @rendering = rendering
    end

    # @return [String] the document's bytes, UTF-8
    # @raise [EncodingError] naming the record and member that cannot be written
    def to_json(*)
      rendering.body
    end
    alias to_s to_json

    # Rack's body: yields the document in pieces as they are read, or whole if it has been written already.
    # @yieldparam bytes [String]
    def each(&block)
      rendering.body? ? yield(rendering.body) : stream.each(&block)
    end

    # @param options see {Stream#initialize}
    # @return [Stream] a body that is never whole in memory
    def stream(**options)
      @stream = Stream.new(self, **options)
    end

    # Rack calls this when the client has gone.
    def close
      @stream&.close
    end

    # @return [Integer] 200, or 404 where one record was requested and does not exist
    def status
      rendering.found? ? 200 : 404
    end

    # A validator that costs no body where the document is kept: it is made of the version of the tables; else of the bytes.
    # @return [String] an entity tag (RFC 9110, section 8.8.3)
    def etag
      rendering.etag
    end

    # @return [Hash] for Rails' `stale?(**document.validators)`
    def validators
      { etag: etag, public: public? }
    end

    # @return [Boolean] whether shared caches may keep the document: {#public!} was called, and nothing in it is the viewer's own
    def public?
      @public == true && rendering.plan.holes.empty?
    end

    # Declares that every client may see this document: its scope and its resources are the same for all. {Serve::App} calls it where
    # there is no `authenticate`. A document with a viewer stays private.
    # @return [self]
    def public!
      @public = rendering.viewer.nil?
      self
    end

    # @return [String] RFC 9111, section 5.2: a client may keep the document, and must ask whether it has changed
    def cache_control
      public? ? "public, no-cache" : "private, no-cache"
    end

    # @return [Hash{String => String}] lower-case names, as Rack 3 requires
    def headers
      { "content-type" => MEDIA_TYPES.fetch(rendering.plan.format), "etag" => etag, "cache-control" => cache_control, "vary" => "accept" }
    end

    # @return [String] in words: what will be read, and why the document is kept or not
    def explain
      rendering.explain
    end
  end

  class << self
    # Checks every resource that is loaded: the Railtie calls it at boot.
    # @raise [DeclarationError]
    def check!
      Resource.descendants.each { |resource| resource.checked_rows if resource.declarations.model }
    end
  end
end

require_relative "document/rendering"
require_relative "document/records_rendering"
require_relative "document/of_resource"
require_relative "document/viewer_blocks"
require_relative "document/included_ids"
require_relative "document/stream"
require_relative "document/stream_piece"
require_relative "document/too_many_included"
require_relative "document/tables"
require_relative "document/custom_code"
require_relative "document/declaration_check"
require_relative "document/explanation"

Castellan::Resource.extend(Castellan::Document::OfResource)
