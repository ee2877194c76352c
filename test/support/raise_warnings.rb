# frozen_string_literal: true

# Makes a warning about a file of this repository an error, so that noise never grows back. Warnings about installed gems
# are dropped: they are not ours to repair. Texts given to Kernel#warn without `uplevel:` pass through, because they are output.
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
