# frozen_string_literal: true

# A proxy that records what it should purge, and fails while it is `away`.
class PurgedProxy
  attr_reader :purged
  attr_accessor :away

  def initialize = @purged = []

  def purge(tags)
    raise "away" if away

    @purged.concat(tags)
  end
end
