# frozen_string_literal: true

# A controller for each step, in the order of steps.yml.
Rails.application.routes.draw do
  scope "/users", module: "users" do
    get "baseline", to: "baseline#index"
    get "includes_told", to: "includes_told#index"
    get "includes", to: "includes#index"
    get "index_serializer", to: "index_serializer#index"
    get "all_associations", to: "all_associations#index"
    get "last_login_told", to: "last_login_told#index"
    get "last_login", to: "last_login#index"
    get "jsonapi_serializer", to: "jsonapi_serializer#index"
    get "record_cache_told", to: "record_cache_told#index"
    get "record_cache", to: "record_cache#index"
  end

  draw :castellan if ENV["WITH_CASTELLAN"] == "1"

  get "users/:id", to: "users#show", constraints: { id: /\d+/ }
end
