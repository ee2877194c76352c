# frozen_string_literal: true

module Castellan
  module Serializer
    # What a client may be at fault for; jsonapi-serializer's name for the parent of its errors.
    class Error < BadRequest; end
  end
end
