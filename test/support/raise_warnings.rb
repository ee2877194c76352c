# frozen_string_literal: true

# Raises warnings about files of this repository. Drops warnings about installed gems, because they cannot be
# fixed here. Texts of Kernel#warn without `uplevel:` are normal output.
$VERBOSE = true

module Castellan
  module RaiseWarnings
    OURS = %r{\A#{Regexp.escape(File.expand_path('../..', __dir__))}/(?!.*vendor/bundle/)[^:]+:\d+: warning: }
    GEMS = /\A(?:#{Regexp.union([*Gem.path, RbConfig::CONFIG['rubylibprefix']]).source})[^:]*:\d+: warning: /

    def warn(message, **)
      raise message if OURS.match?(message)

      super unless GEMS.match?(message)
    end
  end
end

Warning.extend(Castellan::RaiseWarnings)
