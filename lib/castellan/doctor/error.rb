# frozen_string_literal: true

module Castellan
  module Doctor
    # The application cannot be examined: it does not boot, or does not answer with success. The message has the reason, what was set, and
    # what to do next.
    class Error < Castellan::Error; end
  end
end
