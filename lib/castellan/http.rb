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
    # The body of a 304 and of the response to HEAD. Not an Array: Puma would send "content-length: 0", but there
    # that field has the length of the content (RFC 9110 §8.6).
    NOTHING = [].freeze.each.freeze
  end
end

require_relative "http/preconditions"
require_relative "http/media_type"
require_relative "http/negotiation"
require_relative "http/content_coding"
require_relative "http/cache_control"
