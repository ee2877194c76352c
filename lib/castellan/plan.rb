# frozen_string_literal: true

# Compiles a request into a plan of queries.
#
#   request = Castellan::Plan::Request.parse(definition, "include" => "roles", "sort" => "-id")
#   plan = Castellan::Plan.compile(definition, request)   # => FetchPlan, cached per shape of the request
#
# Undeclared members raise BadRequest before any query.
require_relative "version"
require_relative "errors"
require_relative "nearest"
require_relative "client_text"
require_relative "bounded_cache"
require_relative "plan/node"
require_relative "plan/row_set"
require_relative "plan/fetch_plan"
require_relative "plan/parameter"
require_relative "plan/comparisons"
require_relative "plan/cursor"
require_relative "plan/include_tree"
require_relative "plan/fields"
require_relative "plan/request"
require_relative "plan/compiler"

module Castellan
  module Plan
    # @param definition [Resource::Definition]
    # @param request [Request]
    # @return [FetchPlan]
    def self.compile(definition, request)
      definition.plans.fetch(request.signature) { Compiler.new(definition, request).call }
    end
  end
end
