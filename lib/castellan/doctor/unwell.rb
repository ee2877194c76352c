# frozen_string_literal: true

module Castellan
  module Doctor
    # The application could not be examined, and why: it does not boot, or it did not answer with success. The message is
    # complete: what was wrong, what had been set, what to do next.
    class Unwell < Error; end
  end
end
