# frozen_string_literal: true

require "test_helper"
require_relative "encoder_contract"

class NativeEncoderTest < Minitest::Test
  include Castellan::EncoderContract

  def setup
    skip "needs the C extension (rake compile)" unless Castellan::Serialize.native?
  end

  def encoder = Castellan::Serialize::NativeEncoder
end
