# frozen_string_literal: true

# Base class of the resources: strict pages, no links. Each resource sets `immutable`, which is not inherited.
class ApplicationResource < JSONAPI::Resource
  abstract
  exclude_links :default
  paginator :strict
end
