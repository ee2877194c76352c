# frozen_string_literal: true

# Loaded by `require "jsonapi/serializer/instrumentation"` instead of the gem's file.
require_relative "../../../jsonapi_serializer"
require_relative "../../../../serializer/instrumentation"
