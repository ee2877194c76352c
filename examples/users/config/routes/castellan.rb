# frozen_string_literal: true

# The steps that use Castellan, drawn only with WITH_CASTELLAN=1; their code is in castellan_steps/.
scope "/users/castellan" do
  get "/", to: "castellan_users#resource"
  get "document_cache", to: "castellan_users#document_cache"
end
