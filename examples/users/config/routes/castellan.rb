# frozen_string_literal: true

# The steps with Castellan, drawn only with WITH_CASTELLAN=1. Their code is in castellan_steps/.
scope "/users/castellan" do
  get "/", to: "castellan_users#resource"
  get "document_cache", to: "castellan_users#document_cache"
end
