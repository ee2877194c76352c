# frozen_string_literal: true

module Castellan
  # Sets of records of one model that were loaded at one place: the siblings among which a repeated query begins. Frozen.
  #
  #   Load.new(model: "User", count: 150, site: CallSite.current, times: 1).location   # => "app/controllers/users_controller.rb:12"
  #
  # `count` is the number of records, `times` how many statements brought them, `root` the first model that was loaded
  # at the same place, `order` how much had been seen before, `joined` whether `count` is of rows of a JOIN, in which a record
  # may come several times.
  Load = Struct.new(:model, :count, :site, :times, :root, :order, :joined, keyword_init: true) do
    def initialize(**)
      super
      freeze
    end

    # @return [String, nil] "path:line"
    def location
      CallSite.location(site)
    end
  end
end
