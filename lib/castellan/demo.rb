# frozen_string_literal: true

# Replays the accounts that Castellan answers to, on the applications in `examples/`: each step an endpoint, each measured, each
# compared with the step before. `castellan demo` is its command line.
#
#   replay = Castellan::Demo::Replay.new(seconds: 5).call
#   puts replay.ledger.to_text
require_relative "version"
require_relative "errors"
require_relative "clock"
require_relative "nearest"
require_relative "load_test"
require_relative "ledger"
require_relative "demo/story"
require_relative "demo/comparison"
require_relative "demo/watchdog"
require_relative "demo/workplace"
require_relative "demo/example"
require_relative "demo/exchange"
require_relative "demo/progress"
require_relative "demo/database"
require_relative "demo/budget"
require_relative "demo/examined_story"
require_relative "demo/loaded_story"
require_relative "demo/goals"
require_relative "demo/replay"
