# frozen_string_literal: true

module Castellan
  module Serializer
    # A record without an id, where no `set_id` says what identifies it: a mistake of the developer.
    class MandatoryField < Castellan::Error; end
  end
end
