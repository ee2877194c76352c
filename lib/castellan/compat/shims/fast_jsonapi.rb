# frozen_string_literal: true

# Loaded by `require "fast_jsonapi"` instead of the gem's file.
require_relative "../jsonapi_serializer"
