# frozen_string_literal: true

require_relative "../config/environment"
require_relative "../../shared/setup"
require_relative "seeds"

Setup.of(%w[users access_tokens posts comments readings], File.expand_path("schema.rb", __dir__))
