# frozen_string_literal: true

require_relative "../compat"
require_relative "../serializer"

Castellan::Compat.claim("JSONAPI::Serializer", "jsonapi-serializer", Castellan::Serializer)

# The constants of jsonapi-serializer 2.2: serializers that include JSONAPI::Serializer are Castellan's, and what rescues its errors
# rescues these.
#
#   require "castellan/compat/jsonapi_serializer"
#
#   class UserSerializer
#     include JSONAPI::Serializer
#     attributes :email
#   end
#
# What the application itself requires of the gem (`require "jsonapi/serializer"`) has to go with it.
module JSONAPI
  Serializer = Castellan::Serializer unless const_defined?(:Serializer, false)
end

require_relative "fast_jsonapi"

module Castellan
  module Compat
    # @return [Module]
    JsonapiSerializer = ::JSONAPI::Serializer
  end
end
