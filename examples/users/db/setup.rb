# frozen_string_literal: true

require_relative "../config/environment"
require_relative "../../shared/setup"
require_relative "seeds"

Setup.of(%w[users roles assignments groups group_assignments employees authentication_tokens], File.expand_path("schema.rb", __dir__))
