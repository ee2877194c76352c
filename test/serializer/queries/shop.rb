# frozen_string_literal: true

require_relative "../shop"

# Counts the statements of a document with each library.
module SerializerCases
  { "no include" => [], "variants" => [:variants], "images" => [:images], "values" => [:"variants.values"] }.each do |name, include|
    add(name) do |kit|
      SHOP.call(kit)
      count = 0
      subscriber = ActiveSupport::Notifications.subscribe("sql.active_record") { |event| count += 1 unless event.payload[:name] == "SCHEMA" }
      document = kit.of("ProductSerializer", Product.includes(Product::LOADED).order(:id), include: include, params: { currency: "EUR" })
      defined?(Castellan) ? document.to_json : document.serializable_hash.to_json
      ActiveSupport::Notifications.unsubscribe(subscriber)
      count
    end
  end
end
