# frozen_string_literal: true

module Castellan
  module Doctor
    # Raised if the application does not boot, or does not respond with success.
    # The message has the reason and the next step.
    class Error < Castellan::Error; end
  end
end
