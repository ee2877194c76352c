# frozen_string_literal: true

# Loaded by `require "jsonapi/serializer"` instead of the gem's file.
require_relative "../../jsonapi_serializer"
