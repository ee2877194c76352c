# frozen_string_literal: true

# What the resources of this app share: strict pages, and no links of their own, because nobody asked for any.
# `immutable` is the one setting that is not inherited; each resource says it.
class ApplicationResource < JSONAPI::Resource
  abstract
  exclude_links :default
  paginator :strict
end
