# frozen_string_literal: true

module Castellan
  VERSION = "0.1.0"
end
