# frozen_string_literal: true

require_relative "errors"
require_relative "clock"
require_relative "client_text"

module Castellan
  # The words of HTTP as pure functions on header values (RFC 9110 and 9111, JSON:API 1.1): no sockets, no Rack, no state.
  #
  #   etag = Castellan::HTTP::Validators.etag(key)
  #   Castellan::HTTP::Preconditions.evaluate(method: "GET", headers: env, etag: etag) # => :not_modified
  #
  # Where a method takes `headers:`, that is a Rack environment, a Hash with names in lower case, or Rails' request headers.
  module HTTP
  end
end

require_relative "http/timestamp"
require_relative "http/validators"
require_relative "http/preconditions"
require_relative "http/cache_control"
require_relative "http/media_type"
require_relative "http/negotiation"
require_relative "http/vary"
