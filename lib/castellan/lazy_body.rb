# frozen_string_literal: true

module Castellan
  # Detects a body that Rails makes while it is sent: `self.response_body = Enumerator.new { … }`.
  #
  #   Castellan::LazyBody.in?(env)   # => true, after the application has returned
  #
  # Such a body responds to `to_ary`, which returns the Enumerator instead of an Array.
  module LazyBody
    module_function

    # @param env [Hash] Rack environment
    # @return [Boolean] whether a controller of Rails makes the body while it is sent
    def in?(env)
      body = env["action_controller.instance"]&.response_body
      !body.nil? && !body.respond_to?(:to_ary)
    end
  end
end
