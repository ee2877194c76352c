# frozen_string_literal: true

module Castellan
  # Fails a test that has no assertions.
  module MustAssert
    def before_teardown
      super
      flunk("#{name} asserts nothing") if failures.empty? && assertions.zero?
    end
  end
end

Minitest::Test.include(Castellan::MustAssert)
