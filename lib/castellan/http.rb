# frozen_string_literal: true

require_relative "errors"
require_relative "option_check"
require_relative "clock"
require_relative "bounded_cache"
require_relative "client_text"

module Castellan
  # Evaluates conditional requests and content negotiation from header fields alone.
  #
  #   Castellan::HTTP::Preconditions.evaluate(method: "GET", headers: env, etag: '"v17"')   # => :not_modified
  #   Castellan::HTTP::Negotiation.new.response_type(env["HTTP_ACCEPT"])
  #   # => "application/vnd.api+json"
  #   Castellan::HTTP::CacheControl.new(max_age: 60).shared
  #   # => { "cache-control" => "public, max-age=60" }
  #
  # See RFC 9110 and JSON:API 1.1.
  module HTTP
  end
end

require_relative "http/preconditions"
require_relative "http/media_type"
require_relative "http/negotiation"
require_relative "http/content_coding"
require_relative "http/cache_control"
