# frozen_string_literal: true

# Base class of the resources: strict pages, no links. `immutable` is not inherited, so each resource sets it.
class ApplicationResource < JSONAPI::Resource
  abstract
  exclude_links :default
  paginator :strict
end
