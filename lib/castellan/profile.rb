# frozen_string_literal: true

require_relative "version"
require_relative "errors"
require_relative "config"
require_relative "clock"
require_relative "recording"
require_relative "store"

module Castellan
  # Where the time and the memory of one request go: queries with their lines and findings, parts, objects, samples.
  #
  #   use Castellan::Profile::Middleware      # in config.ru; the page is at /castellan
  #
  # The middleware records authorised requests only; {Result} is what was recorded, {Results} keeps them, {Page} shows them.
  module Profile
  end
end

require_relative "profile/result"
require_relative "profile/summary"
require_relative "profile/results"

module Castellan
  module Profile
    autoload :Middleware, "castellan/profile/middleware"
    autoload :Page, "castellan/profile/page"
  end
end
