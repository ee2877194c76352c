# frozen_string_literal: true

module Castellan
  module Serializer
    # The parent of errors that a client can cause, under the name that jsonapi-serializer has for it.
    class Error < BadRequest; end
  end
end
