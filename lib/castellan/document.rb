# frozen_string_literal: true

require_relative "version"
require_relative "config"
require_relative "recording"
require_relative "resource"
require_relative "http"
require_relative "plan"
require_relative "rows"
require_relative "serialize"

module Castellan
  # Represents the response to one request. Runs no query before its bytes, status or ETag are read.
  #
  #   document = UserResource.document(User.active, query: params, viewer: current_user)
  #   document.to_json                       # => the bytes
  #   render json: document                  # Rails; Rack: [document.status, document.headers, document]
  #   render json: document if stale?(**document.validators)
  #
  # Use it for one request in one thread. {BadRequest} is raised when the
  # document is created, before any query.
  class Document
    MEDIA_TYPES = { json_api: "application/vnd.api+json", nested: "application/json; charset=utf-8" }.freeze

    # Adds `document` and `render` to {Resource}.
    #
    #   UserResource.document(User.active, query: params)   # => a {Document}
    #   UserResource.render(User.active)                    # => its bytes
    module OfResource
      # Builds the document of one request, without reading anything. A `scope` of the
      # resource also applies to given records.
      # @param scope a relation, dataset or model (default `:all`: the declared model); or records: an Array
      #   of models or other objects, a loaded relation, or one record. If the record is nil, the document
      #   is `{"data":null}` with status 404
      # @param query [Hash, Plan::Request, nil] the framework's raw parameters, of which `include`, `fields`,
      #   `filter`, `sort` and `page` are used; or a parsed request, which is frozen and can be reused
      # @param viewer [Object, nil] passed to blocks that take a viewer
      # @param id [Object, nil] the id of a single record; status 404 if it is nil or does not
      #   exist. Default `:all`: a collection
      # @param together [Boolean, nil] whether blocks that take records load associations for all records at
      #   once; nil: see {Resource.together}
      # @return [Document]
      # @raise [BadRequest] with the parameter and the allowed values
      # @raise [ConfigurationError] if the scope is of another model
      def document(scope = :all, query: {}, viewer: nil, id: :all, meta: nil, links: nil, keeper: Castellan.keeper, together: nil, **asked)
        adapter = @checked_rows || checked_rows
        scope = nil if id.nil?
        id = nil if :all.equal?(id)
        request = query.is_a?(Plan::Request) ? query : Plan::Request.parse(@definition, query, **asked)
        scopes = Rows::ViewerScopes.new(viewer)
        Document.new(Rendering.for(@definition, adapter, scope, id: id, request: request, scopes: scopes, viewer: viewer, meta: meta,
                                                                links: links, keeper: keeper, together: together))
      end

      # Returns the rows of this resource that a viewer may see, for a filter's block or a controller.
      #
      #   filter(:tag) { |posts, names, viewer|
      #     posts.where(id: TagResource.visible_to(viewer).where(name: names).select(:post_id))
      #   }
      # @param viewer [Object, nil]
      # @return [Object] a relation or dataset of the model; unrestricted without a `scope`
      # @raise [DeclarationError]
      def visible_to(viewer)
        Rows::ViewerScopes.new(viewer).narrow(definition, checked_rows)
      end

      # Raises, because a resource has no instances; {#document} renders records.
      # @raise [ConfigurationError] always
      def new(*)
        raise ConfigurationError, "#{name || "a resource"} has no instances: write #{name}.document(record) for a document, " \
                                  "#{name}.render(record) for its bytes"
      end

      # @return [String] the bytes, like `document(…).to_json`
      def render(scope = :all, **options)
        document(scope, **options).to_json
      end

      # Checks this declaration and those of all related resources against the database, once.
      # @return [Object] the rows adapter
      # @raise [DeclarationError]
      def checked_rows
        @checked_rows ||= Document::DeclarationCheck.of(definition).tap do
          definition.reachable.each { |reached| Document::DeclarationCheck.of(reached) }
          Castellan.keeper&.learn(definition)
        end
      end
    end

    class << self
      # Set by {Verify}, which compares documents with the models.
      # @return [#current, nil]
      attr_accessor :verifier

      # @return [Verify::Verification, nil] nil outside of `Castellan.verify`
      def verification
        @verifier&.current
      end

      # @param definition [Resource::Definition]
      # @return [HTTP::CacheControl] what {Resource.cache_control} declares
      # @raise [ConfigurationError]
      def cache_control_of(definition)
        definition.derive(:cache_control) { HTTP::CacheControl.new(**(definition.cache_control || {})) }
      rescue ConfigurationError => error
        raise DeclarationError.new(error.message, location: definition.cache_control_location).of(definition.name)
      end
    end

    attr_reader :rendering

    # @param rendering [Rendering]
    def initialize(rendering)
      @rendering = rendering
      @place = rendering.adapter.place
      @locale, @zone = locale_and_zone
    end

    # @return [String] the document's bytes, UTF-8
    # @raise [EncodingError] with the record and member, if a value cannot be written
    def to_json(*)
      there { rendering.body }
    end
    alias to_s to_json

    # What ActiveSupport and Jbuilder write if the document is a member of a Hash of the application's.
    # @return [Hash, Array, nil]
    def as_json(*) = JSON.parse(to_json, allow_duplicate_key: true)

    # Reads nothing: `bin/rails console` shows each document this way.
    def inspect = "#<#{self.class} of #{rendering.definition.type}>"

    # Rack's body: yields the document in pieces while rows are read, or
    # in one piece if it is already written.
    # @yieldparam bytes [String]
    def each(&block)
      rendering.body? ? yield(rendering.body) : stream.each(&block)
    end

    # @param options see {Stream#initialize}
    # @return [Stream] a Rack body that never has the whole document in memory
    def stream(**options)
      @stream = Stream.new(self, **options)
    end

    # Rack calls this after the response, even if the client disconnected.
    def close
      @stream&.close
    end

    # @return [Integer] 200, or 404 if the requested record does not exist
    def status
      there { rendering.found? } ? 200 : 404
    end

    # Returns the entity tag. It derives from the versions of the tables for cached documents,
    # without rendering; otherwise from the bytes.
    # @return [String] an entity tag (RFC 9110, section 8.8.3)
    def etag
      there { rendering.etag }
    end

    # @return [Hash] `{ etag:, public: }` for Rails' `stale?(**document.validators)`
    def validators
      { etag: etag, public: public? }
    end

    # @return [Boolean] whether shared caches may store the document: after {#public!}, unless {#personal?}
    def public?
      @public == true && !personal?
    end

    # @return [Boolean] whether it has a viewer or per-viewer values
    def personal?
      !rendering.viewer.nil? || rendering.plan.holes.any?
    end

    # Declares that the document is the same for all clients. {Serve::App} calls it without `authenticate`. A
    # document with a viewer stays private.
    # @return [self]
    def public!
      @public = true
      self
    end

    # @return [String] RFC 9111, section 5.2, as {Resource.cache_control} declares; without a declaration,
    #   clients may store the document and must revalidate it
    def cache_control
      cache_fields.fetch("cache-control")
    end

    # @return [Hash{String => String}] Cache-Control, and CDN-Cache-Control if it is declared
    def cache_fields
      declared = Document.cache_control_of(rendering.definition)
      public? ? declared.shared : declared.private
    end

    # @return [Hash{String => String}] names are in lower case, as Rack 3 requires
    def headers
      { "content-type" => rendering.media_type, "etag" => etag, **cache_fields, "vary" => "accept" }
    end

    # @return [String] the queries, and why the document is cached or not
    def explain
      rendering.explain
    end

    # Read the {#rendering} in this block, because it keeps the first cache key that it computes.
    # @api private
    # @return the result of the block, which runs on the shard or server, and in the locale and time zone, where the
    #   document was made
    def there(&block) = within(@locale, @zone) { rendering.adapter.within(@place, &block) }

    # @api private
    # @return [Proc] calls the block in the locale and time zone of now, for {#there}: if a fiber waits in the block, others
    #   keep theirs
    def outside(&block)
      locale, zone = locale_and_zone
      ->(bytes) { within(locale, zone) { block.call(bytes) } }
    end

    private

    def locale_and_zone
      [(I18n.locale if defined?(::I18n)), (Time.zone if Time.respond_to?(:zone))]
    end

    # A server reads the body after a middleware has set back the locale.
    def within(locale, zone, &block)
      return in_zone(zone, &block) if locale.nil? || locale == I18n.locale

      I18n.with_locale(locale) { in_zone(zone, &block) }
    end

    def in_zone(zone, &block) = Time.respond_to?(:zone) && zone != Time.zone ? Time.use_zone(zone, &block) : yield
  end

  class << self
    # Checks all loaded resources against the database. The Railtie calls this at boot.
    # @raise [DeclarationError]
    def check!
      Resource.descendants.each { |resource| resource.checked_rows if resource.declarations.model }
    end
  end
end

require_relative "document/rendering"
require_relative "document/cursor_page"
require_relative "document/records_rendering"
require_relative "document/union_rendering"
require_relative "document/viewer_blocks"
require_relative "document/included_ids"
require_relative "document/stream"
require_relative "document/stream_piece"
require_relative "document/too_many_included"
require_relative "document/custom_code"
require_relative "document/declaration_check"
require_relative "document/explanation"

Castellan::Resource.extend(Castellan::Document::OfResource)
