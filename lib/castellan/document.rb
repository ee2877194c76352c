# frozen_string_literal: true

require "digest"
require "json"
require_relative "version"
require_relative "recording"
require_relative "resource"
require_relative "plan"
require_relative "rows"
require_relative "serialize"

module Castellan
  # The lazy answer to one request: composes declaration, plan, rows and encoder. Reads nothing until it is asked for bytes.
  #
  #   document = UserResource.document(User.active, query: params, viewer: current_user)
  #   document.to_json                       # => the bytes
  #   render json: document                  # Rails; Rack: [document.status, document.headers, document]
  #   render json: document if stale?(**document.validators)
  #
  # What was asked for wrongly is a {BadRequest} at once, before any query. A document is of one request and one thread.
  class Document
    UUID = /\A\h{8}-\h{4}-\h{4}-\h{4}-\h{12}\z/
    private_constant :UUID
    NO_BYTES = ""
    # By how text is escaped.
    TEMPLATES = { json: :json_template, rails: :rails_template, rails_html: :rails_html_template }.freeze
    private_constant :NO_BYTES, :TEMPLATES
    MEDIA_TYPES = { json_api: "application/vnd.api+json", nested: "application/json; charset=utf-8" }.freeze

    # @return [Keeper, nil] of the application: nil until `Castellan.keep` was called, and where this room is used alone
    def self.keeper
      Castellan.keeper if Castellan.respond_to?(:keeper)
    end

    class << self
      # Compares documents with those of the models, once {Verify} is loaded.
      # @return [#current, nil]
      attr_accessor :verifier

      # @return [Verify::Verification, nil] inside `Castellan.verify`
      def verification
        @verifier&.current
      end
    end

    # @return [Resource::Definition]
    # @return [Plan::FetchPlan]
    # @return [Plan::Request]
    # @return [Object, nil] whom per-viewer attributes are filled for
    # @return [Rows::ViewerScopes] what the viewer may see
    attr_reader :definition, :plan, :request, :viewer, :scopes

    # @param keeper [#fetch, nil] keeps what was written; see {Keeper}. Without one everything is made anew.
    def initialize(definition, scope, request:, adapter:, viewer: nil, id: nil, meta: nil, links: nil, keeper: nil,
                   scopes: Rows::ViewerScopes.new(viewer))
      @definition = definition
      @scopes = scopes
      @scope = scope
      @request = request.seen_by(viewer)
      @adapter = adapter
      @viewer = viewer
      @id = id
      @meta = object!("meta", meta)
      @links = object!("links", links)
      @keeper = keeper
      @plan = Plan.compile(definition, @request)
    end

    # @return [String] the document's bytes, UTF-8
    # @raise [EncodingError] naming the record and member that cannot be written
    def to_json(*)
      @body ||= plan.holes.empty? ? output.body : output.fill(Batches.of(plan, @adapter), viewer)
    end
    alias to_s to_json

    # Rack's body: yields the document in pieces, read one by one (see {Stream}) unless its bytes are there already.
    def each(&block)
      @body ? yield(@body) : stream.each(&block)
    end

    # @param options see {Stream#initialize}
    # @return [Stream] the document as a body that is never whole in memory
    def stream(**options)
      @stream = Stream.new(self, @adapter, **options)
    end

    # For Rack: the client is gone.
    def close
      @stream&.close
    end

    # @return [Integer] 200, or 404 when one resource was asked for by id and is not there
    def status
      @id && output.body.start_with?('{"data":null', "null") ? 404 : 200
    end

    # A validator that does not cost the body: made of the version of what the plan reads where that is kept, else of the bytes.
    # @return [String] an entity tag (RFC 9110, section 8.8.3)
    def etag
      @etag ||= basis && plan.holes.empty? ? @keeper.etag(basis) : digest
    end

    # @return [Time, nil] never known: a validator of seconds cannot tell two writes of one second apart
    def last_modified
      nil
    end

    # @return [Hash] for Rails' `stale?(**document.validators)`
    def validators
      { etag: etag, last_modified: last_modified, public: public? }
    end

    # Whether the bytes are the same for everybody: nobody was named as the viewer, and nothing is filled in for one. A document
    # of a scope that the developer made (`current_user.posts`) is private unless {Serve::App} serves it to everybody.
    # @return [Boolean]
    def public?
      @public == true && plan.holes.empty?
    end

    # Says that the scope and the declaration are the same for every client: what a server without authentication knows.
    # @return [self]
    def for_everybody
      @public = viewer.nil?
      self
    end

    # @return [String] RFC 9111, section 5.2: a client may keep the document, and asks whether it is still the same
    def cache_control
      public? ? "public, no-cache" : "private, no-cache"
    end

    # @return [Hash{String => String}] lower-case names, as Rack 3 asks
    def headers
      { "content-type" => MEDIA_TYPES.fetch(plan.format), "etag" => etag, "cache-control" => cache_control, "vary" => "accept" }
    end

    # Adds links that can be written only when the data is read.
    # @param base [String] what the links are made of: documents with other links are other documents
    # @yieldparam total [Integer, nil] how many there are in all, nil when that is not counted
    # @yieldparam full [Boolean] whether there are as many on the page as fit
    # @yieldreturn [Hash]
    def link(base, &block)
      @link_base = base
      @linker = block
      self
    end

    # @return [String] in words, what will be read
    def explain
      Explanation.new(self, @adapter, narrowed).to_s
    end

    # What the layers that keep documents ask; not of interest to an application.

    # @return [Array<String>, nil] the tables that the document is made of, or nil when that cannot be known
    def tables
      @tables ||= (Tables.new(plan, @adapter, scopes).of(narrowed, statement) unless custom_code.reads_records?)
    end

    # @return [Array<String>] why {#tables} is nil; empty where it is not
    def unknown_tables
      Tables.new(plan, @adapter, scopes).reasons(narrowed, statement)
    end

    # @return [CustomCode] the Ruby code of the application that writing the document runs
    def custom_code
      loaded = @adapter.loaded_classes(plan)
      plan.derive(loaded.empty? ? :custom_code : [:custom_code, loaded]) { CustomCode.new(plan, @adapter) }
    end

    # What tells this document from every other of the same version is its {#shape}, its {#statement} and its {#values}.

    # @return [Array] the same for each request of its plan
    def shape
      [definition.name, plan.signature]
    end

    # @return [Array] order, page, id, what stands around the data, and what Ruby code reads besides its columns
    def values
      around = json("meta and links", [@meta, @links]) if @meta || @links
      [request.sort, request.page, @id&.to_s, around, @link_base, Serialize.escape, custom_code.surroundings(viewer)]
    end

    # @return [String] the SQL of what order, page and id are put on (those are told apart by their values, so that a kept document is
    #   found without making a statement of them), and that of the scopes of its associations and of all resources in it
    def statement
      @statement ||= begin
        key = @adapter.scope_key(narrowed, plan)
        (further = scopes_sql).empty? ? key : [key, *further].join("\n")
      end
    end

    # @return [Boolean] whether the primary data is a list
    def collection?
      @id.nil?
    end

    # @return [Array<Object>] the records of the primary data, for {Verify}
    def records
      @adapter.load(paged, whole: true)
    end

    # @return [Serialize::Output] written anew from rows; from models inside `Castellan.verify`, where those say something else
    def write
      verification = Document.verification
      verification ? verification.check(self, write_rows) : write_rows
    end

    # @return [Serialize::Output]
    def write_rows
      row_set = @adapter.fetch(plan, paged, viewer: viewer, scopes: scopes)
      ends = tail(row_set.tables.first.rows)
      Recording.span(:render, definition.name) { Serialize.encoder.encode(row_set, template, single: !collection?, tail: ends) }
    ensure
      row_set&.give_up
    end

    # For what reads and writes a part of the document by itself.
    # @return [Plan::RowSet]
    def rows_of(part, adapter, scope)
      adapter.fetch(part, scope, viewer: viewer, scopes: scopes)
    end

    # @return [Serialize::Template]
    def template_of(part)
      escape = Serialize.escape
      part.derive(TEMPLATES.fetch(escape)) { Serialize::Template.new(part, escape: escape) }
    end

    # @return [Array<Resource::Definition, nil>, nil] see {Rows::PlanScopes#along}
    def scoped_along(node, member)
      Rows::PlanScopes.of(plan, @adapter).along(node.columns[member.positions.first]) if member.positions.any?
    end

    # @return [Boolean] whether its bytes are kept between requests
    def kept?
      !basis.nil?
    end

    # @return [String, nil] why nothing of it is kept now; nil where it is
    def not_kept
      return "Castellan.keep was not called" unless @keeper
      return "it is written anew inside Castellan.verify" if Document.verification

      @keeper.reason(self)
    end

    # @return [Array<String>] why it can never be kept, whatever the store and the versions are
    def unkeepable
      custom_code.obstacles + unknown_tables
    end

    # @param rows [Array, #ntuples] the primary data, to see how many there are
    # @return [String] ready bytes of the members after `data` and `included`
    def tail(rows)
      return NO_BYTES unless @meta || @links || @linker || counted?

      meta = total ? { definition.paging.count => total, **(@meta || {}) } : @meta
      text = +""
      text << %(,"meta":#{json("meta", meta)}) if meta
      links = @linker ? { **(@links || {}), **@linker.call(total, full?(rows)) } : @links
      text << %(,"links":#{json("links", links)}) if links
      text
    end

    # @return [Object] the relation or dataset with filters, order and page
    def paged
      @paged ||= @id || request.page.nil? ? ordered : @adapter.page(ordered, **window)
    end

    private

    # A time, a decimal or a record is written there as an attribute would be.
    def json(member, value)
      @adapter.json(value)
    rescue ::JSON::GeneratorError, ::JSON::NestingError, ::EncodingError => error
      raise EncodingError, "#{definition.type}, #{member} of the document: #{error.message.scrub[0, 120]}"
    end

    def object!(member, value)
      return value if value.nil? || value.is_a?(Hash)

      raise ConfigurationError, "#{member}: of a document must be a Hash, got #{value.inspect[0, 60]}"
    end

    # What the kept bytes depend on, read before anything else and once; nil when nothing is kept.
    def basis
      return @basis if defined?(@basis)

      @basis = (@keeper.basis(self) if @keeper && definition.caching && Document.verification.nil?)
    end

    def output
      @output ||= basis ? @keeper.fetch(self, basis) : write
    end

    # Of the bytes: a document with values of a viewer's own changes when those do. OpenSSL's SHA-256 is the faster one; it is
    # used only if the application has loaded it.
    def digest
      bytes = defined?(OpenSSL::Digest) ? OpenSSL::Digest.digest("SHA256", to_json) : Digest::SHA256.digest(to_json)
      %("#{[bytes].pack("m0").tr("+/", "-_")[0, 32]}")
    end

    # @return [Array<String>] SQL of the scopes of the resources in the document
    def scopes_sql
      Rows::PlanScopes.of(plan, @adapter).sql(scopes)
    end

    def template
      template_of(plan)
    end

    def narrowed
      return @scope if request.filters.empty?

      @narrowed ||= request.filters.reduce(@scope) { |scope, filter| narrower(scope, *filter) }
    end

    def narrower(scope, name, values)
      block = definition.filters.fetch(name)
      takes_viewer = block.parameters.count { |kind, _| %i[req opt].include?(kind) } > 2
      narrower = takes_viewer ? block.call(scope, values, viewer) : block.call(scope, values)
      narrower = @adapter.scope(narrower) if Rows.scope?(narrower)
      return narrower if @adapter.scope?(narrower)

      raise ConfigurationError, "filter(:#{name}) of #{definition.name} must return the narrowed scope, got #{narrower.class}"
    end

    def ordered
      return @adapter.by_ids(narrowed, possible_ids, definition.id_column) if @id

      request.sort.empty? && request.page.nil? ? narrowed : @adapter.order(narrowed, request.sort, key: definition.id_column)
    end

    # What is no text identifies nothing, and what is no UUID is no id of a column of those: PostgreSQL would refuse to compare them.
    def possible_ids
      id = Rows::Ids.text(@id) or return []
      column = definition.id_column
      column.is_a?(Symbol) && @adapter.database_type(column) == "uuid" && !UUID.match?(id.to_s) ? [] : [id]
    end

    def full?(rows)
      return false unless request.page

      (rows.respond_to?(:ntuples) ? rows.ntuples : rows.size) >= request.page.last
    end

    def window
      number, size = request.page
      { limit: size, offset: (number - 1) * size }
    end

    def total
      @total ||= @adapter.count(narrowed) if counted?
    end

    def counted?
      request.page && definition.paging&.count && !@id
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

require_relative "document/of_records"
require_relative "document/given"
require_relative "document/of_resource"
require_relative "document/batches"
require_relative "document/included_ids"
require_relative "document/stream"
require_relative "document/stream_piece"
require_relative "document/too_many_included"
require_relative "document/tables"
require_relative "document/custom_code"
require_relative "document/declaration_check"
require_relative "document/explanation"

Castellan::Resource.extend(Castellan::Document::OfResource)
