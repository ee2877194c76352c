# frozen_string_literal: true

JSONAPI.configure do |config|
  config.default_page_size = 20
  config.maximum_page_size = 100
  config.top_level_meta_include_record_count = true
  config.always_include_to_one_linkage_data = true
  config.default_exclude_links = :default # no links of relationships, because they have no routes
end
