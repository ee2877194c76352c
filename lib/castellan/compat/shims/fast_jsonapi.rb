# frozen_string_literal: true

# Found by `require "fast_jsonapi"` in place of the gem's file.
require_relative "../jsonapi_serializer"
