# frozen_string_literal: true

require_relative "../castellan"

module Castellan
  # Adds `render jsonapi:` to a Rails controller, for actions that do more than a mounted `Castellan.app`.
  #
  #   class PostsController < ApplicationController
  #     include Castellan::Controller
  #
  #     def index
  #       posts = PostResource.document(Post.published, query: request.query_parameters, viewer: current_user)
  #       render jsonapi: posts
  #     end
  #   end
  #
  # `render jsonapi:` writes the media type, ETag and pagination links, and responds with 304 if nothing has
  # changed. If the record does not exist, or {BadRequest} is raised, it responds with an error document.
  # Cached documents are sent in a content coding that the client accepts, also by `render json:`;
  # Rack::Deflater does not compress them again.
  #
  # Every action negotiates media types (406, 415); call `skip_before_action :negotiate_jsonapi` to turn that
  # off.
  module Controller
    NEGOTIATION = HTTP::Negotiation.new
    RENDERER = :jsonapi
    private_constant :NEGOTIATION, :RENDERER

    # @api private
    def self.included(controller)
      super
      controller._renderers = Set.new(controller._renderers).add(RENDERER).freeze
      controller.before_action(:negotiate_jsonapi)
      controller.rescue_from(BadRequest) { |error| render_jsonapi_error(error) }
    end

    # Called by Rails for `render jsonapi: document`. Other objects are for the renderer of another gem, if one has added it.
    # @api private
    # @param document [Document, Object]
    # @param options [Hash] `purge:`, a {Purge} or nil
    # @return [String] the body
    # @raise [BadRequest] 404 if the record does not exist
    # @raise [ArgumentError] for any object but a document, without such a renderer
    def _render_with_renderer_jsonapi(document, options)
      unless document.is_a?(Document)
        return super if defined?(super)

        raise ArgumentError, "render jsonapi: takes a document, such as PostResource.document(posts), got #{document.class}"
      end

      link_jsonapi_pages(document.rendering)
      raise BadRequest.new("there is nothing at this path", status: 404, title: "Not found") if document.status == 404

      document.there { answer_jsonapi(document, options[:purge]) }
    end

    # Called by Rails for `render json: document`. If the action calls `stale?`, all codings share its weak
    # ETag.
    # @api private
    # @param document [Document, Object]
    # @return [String] the body
    def _render_with_renderer_json(document, options)
      return super if !document.is_a?(Document) || options[:callback] || !document.there { choose_coding(document) }

      response.headers["ETag"] ||= document.etag
      super(document.there { encoded_document(document) }, options)
    end

    private

    # Chooses one of the content codings in which the document is stored.
    # @return [Boolean] whether it is stored in any
    def choose_coding(document)
      offered = document.rendering.codings
      return false if offered.empty?

      coding = HTTP::ContentCoding.choose(request.env["HTTP_ACCEPT_ENCODING"], offered)
      document.rendering.encode(coding) if coding
      vary_by("Accept", "Accept-Encoding")
      true
    end

    # Adds to the fields that the application has set, such as Origin.
    def vary_by(*names)
      given = response.headers["Vary"].to_s.split(/\s*,\s*/)
      response.headers["Vary"] = (given + names).uniq(&:downcase).join(", ")
    end

    def encoded_document(document)
      coding = document.rendering.coding
      response.headers["Content-Encoding"] = coding if coding
      document.rendering.encoded
    end

    def answer_jsonapi(document, purge)
      choose_coding(document)
      type, etag, vary = document.headers.values_at("content-type", "etag", "vary")
      response.headers["ETag"] = etag
      vary_by(vary)
      write_cache_fields(document, purge)
      if HTTP::Preconditions.evaluate(method: request.request_method, headers: request.env, etag: etag) == :not_modified
        self.status = 304
        return ""
      end

      write_jsonapi_type(type)
      encoded_document(document)
    end

    # Keeps what the action has set, such as `expires_in`, but never lets a per-viewer document be public.
    def write_cache_fields(document, purge)
      vary = response.headers["Vary"]
      purged = Serve::CacheFields.purged?(purge, document, request.env, vary)
      noted = purged ? purge.headers(document.rendering, request.env, vary) : {}
      response.headers.merge!(noted)
      own = response.cache_control
      return (own.delete(:public) if document.personal?) if own.any?

      fields = { **Serve::CacheFields.of(document, purge, purged), **noted }
      response.headers.merge!(fields)
      # Rails drops "private" if "no-cache" is set.
      own.update(no_cache: true, extras: ["private"]) if fields["cache-control"] == "private, no-cache"
    end

    # JSON:API 1.1, "Server Responsibilities": the media type has no parameters except ext and profile.
    def write_jsonapi_type(type)
      response.charset = false
      response.headers["Content-Type"] = type
    end

    def negotiate_jsonapi
      NEGOTIATION.request_type!(request.env["CONTENT_TYPE"]) if request.content_length.to_i.positive?
      NEGOTIATION.response_type!(request.env["HTTP_ACCEPT"])
    end

    def render_jsonapi_error(error)
      status, headers, body = Serve::ErrorDocument.of(error)
      headers.except("content-type", "content-length").each { |name, value| response.headers[name] = value }
      render body: body.first, status: status
      write_jsonapi_type(headers["content-type"])
    end

    # Writes no links if the application has fixed the page, because the client cannot choose another.
    def link_jsonapi_pages(rendering)
      return unless rendering.collection? && rendering.request.page && rendering.plan.format == :json_api

      query = request.query_parameters
      parameters = Serve::Parameters.new(Rack::Utils.build_nested_query(query.slice(*Plan::Request::FAMILIES)), rendering.definition)
      return unless parameters.request.page == rendering.request.page

      rest = Rack::Utils.build_nested_query(query.except("page"))
      base = "#{request.path}?#{"#{rest}&" unless rest.empty?}"
      rendering.link(base) { |total, full| parameters.links(base, total, full) }
    end
  end
end
