# frozen_string_literal: true

module Castellan
  module Serializer
    # Raised for a record without an id in a serializer without `set_id`: a mistake of the developer.
    class MandatoryField < Castellan::Error; end
  end
end
