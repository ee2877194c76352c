# frozen_string_literal: true

require_relative "castellan_ways"

module Benchmarks
  # Measures how the time of one document grows with the number of users.
  # It is linear if a user of the longest list costs at most 1.5 times as much as a user of a list a tenth as
  # long (a long list exceeds the caches of the processor).
  class Growth
    ALLOWED = 1.5

    # @param sizes [Array<Integer>] ascending
    # @param turns [Hash] options of {Paired}
    # @return [Array<Hash>] `users`, `ms`, `us_per_user`, `objects`, `bytes`
    def self.measure(example, sizes, turns)
      example.load("castellan_steps")
      ways = sizes.to_h do |size|
        [size, Way.new(size.to_s, nil) { UserResource.render(User.order(:id).limit(size), include: %i[roles groups]) }]
      end
      paired = Paired.new(ways.values, **turns)
      ways.map do |size, way|
        ms = paired.ms(way.name)
        { users: size, ms: ms, us_per_user: (ms * 1000 / size).round(2), objects: paired.objects(way.name), bytes: way.call.bytesize }
      end
    end

    # @param rows [Array<Hash>]
    # @return [Float] the cost per user in the longest list, divided by that in the list a tenth as long
    def self.steepness(rows)
      longest = rows.last
      tenth = rows.find { |row| row[:users] * 10 == longest[:users] }
      (longest[:us_per_user] / tenth[:us_per_user]).round(2)
    end
  end
end
