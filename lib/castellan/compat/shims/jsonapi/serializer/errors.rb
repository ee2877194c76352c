# frozen_string_literal: true

# Found by `require "jsonapi/serializer/errors"` in place of the gem's file.
require_relative "../../../jsonapi_serializer"
