# frozen_string_literal: true

# Found by `require "jsonapi/serializer/instrumentation"` in place of the gem's file.
require_relative "../../../jsonapi_serializer"
require_relative "../../../../serializer/instrumentation"
