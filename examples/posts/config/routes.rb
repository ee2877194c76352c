# frozen_string_literal: true

# A controller for each step, in the order of steps.yml.
Rails.application.routes.draw do
  scope "/posts", module: "posts" do
    get "naive", to: "naive#index"
    get "not_modified_told", to: "not_modified_told#index"
    get "not_modified", to: "not_modified#index"
    get "document", to: "document#index"
    get "summary", to: "summary#index"
    get "perforated_told", to: "perforated_told#index"
    get "perforated", to: "perforated#index"
    get "fragment_told", to: "fragment_told#index"
    get "fragment", to: "fragment#index"
    get "fragment_batched", to: "fragment_batched#index"
    get "public", to: "public#index"
    if ENV["WITH_CASTELLAN"] == "1"
      get "kept", to: "kept#index"
      get "shared", to: "shared#index"
    end
  end

  get "posts/:id", to: "posts#show", constraints: { id: /\d+/ }
  delete "posts/:id", to: "posts#destroy", constraints: { id: /\d+/ }
  patch "profile", to: "profiles#update"
end
