# frozen_string_literal: true

# Replays the stories of `examples/` for `bin/demo`. Each step is an endpoint, which is measured and compared
# with the step before.
#
#   replay = Castellan::Demo::Replay.new(seconds: 5).call
#   puts replay.ledger.to_text
require "castellan"
require "castellan/load_test"
require "castellan/nearest"
require "castellan/public_url"
require_relative "demo/ledger"
require_relative "demo/story"
require_relative "demo/comparison"
require_relative "demo/watchdog"
require_relative "demo/child"
require_relative "demo/example"
require_relative "demo/programs"
require_relative "demo/exchange"
require_relative "demo/progress"
require_relative "demo/database"
require_relative "demo/budget"
require_relative "demo/examined_story"
require_relative "demo/answers"
require_relative "demo/loaded_story"
require_relative "demo/goals"
require_relative "demo/replay"
require_relative "demo/command"
