# frozen_string_literal: true

# Loaded by `require "jsonapi/serializer/errors"` instead of the gem's file.
require_relative "../../../jsonapi_serializer"
