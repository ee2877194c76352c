# frozen_string_literal: true

require_relative "../../castellan"
require_relative "../compat"
require_relative "../serializer"

Castellan::Compat.claim("JSONAPI::Serializer", "jsonapi-serializer", Castellan::Serializer)

# Defines the constants of jsonapi-serializer 2.2: `include JSONAPI::Serializer` uses Castellan.
#
#   require "castellan/compat/jsonapi_serializer"
#
#   class UserSerializer
#     include JSONAPI::Serializer
#     attributes :email
#   end
#
# Afterwards, `require "jsonapi/serializer"` and `require "fast_jsonapi"`
# load this file, even in other libraries.
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
