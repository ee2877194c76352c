# frozen_string_literal: true

require "test_helper"
require_relative "encoder_contract"

class RubyEncoderTest < Minitest::Test
  include Castellan::EncoderContract

  def encoder = Castellan::Serialize::RubyEncoder
end
