# frozen_string_literal: true

# Serves JSON:API in Rack: routing, negotiation, authentication, preconditions, error documents.
#
#   # config.ru
#   run Castellan.app { resource UserResource }
require_relative "errors"
Castellan::ConfigurationError.require_gem("rack", "Castellan.app")
require_relative "document"
require_relative "http"
require_relative "serve/error_document"
require_relative "serve/parameters"
require_relative "serve/frame"
require_relative "write"
require_relative "serve/cache_fields"
require_relative "serve/hits"
require_relative "serve/repeat"
require_relative "serve/endpoint"
require_relative "serve/writes"
require_relative "serve/related"
require_relative "serve/routes"
require_relative "serve/several_tables"
require_relative "serve/operations"
require_relative "serve/options"
require_relative "serve/app"
require_relative "serve/late_app"

module Castellan
  module Serve
    # Autoloaded, because few applications use them, or because they need a gem.
    autoload :DocumentPage, "castellan/serve/document_page"
    autoload :Pages, "castellan/serve/pages"
    autoload :Jwt, "castellan/serve/jwt"
  end
end

require_relative "serve/access_log"
require_relative "serve/health"
require_relative "serve/idempotency"
require_relative "serve/open_api"
require_relative "serve/replicas"
require_relative "serve/schemas"
require_relative "serve/tracing"
