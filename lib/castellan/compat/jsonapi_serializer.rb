# frozen_string_literal: true

require_relative "../../castellan"
require_relative "../compat"
require_relative "../serializer"

Castellan::Compat.claim("JSONAPI::Serializer", "jsonapi-serializer", Castellan::Serializer)

# Defines the constants of jsonapi-serializer 2.2: serializers that include JSONAPI::Serializer are Castellan's.
#
#   require "castellan/compat/jsonapi_serializer"
#
#   class UserSerializer
#     include JSONAPI::Serializer
#     attributes :email
#   end
#
# `require "jsonapi/serializer"` and `require "fast_jsonapi"`, in the application or in a library, find this file from then on.
module JSONAPI
  Serializer = Castellan::Serializer unless const_defined?(:Serializer, false)
end

require_relative "fast_jsonapi"

Castellan::Compat.rename(Castellan::Serializer::Error, "JSONAPI::Serializer::Error")
Castellan::Compat.rename(Castellan::Serializer::UnsupportedIncludeError, "JSONAPI::Serializer::UnsupportedIncludeError")
Castellan::Compat.rename(Castellan::Serializer::MandatoryField, "FastJsonapi::MandatoryField")
Castellan::Compat.replace_gem

module Castellan
  module Compat
    # @return [Module]
    JsonapiSerializer = ::JSONAPI::Serializer
  end
end
