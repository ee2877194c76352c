# frozen_string_literal: true

module Castellan
  # Represents the records of one model that one line loaded, the siblings of an N+1. Frozen.
  #
  #   Load.new(model: "User", count: 150, site: CallSite.current, times: 1).location   # => "app/controllers/users_controller.rb:12"
  #
  # - `count`: the number of records, or of rows if `joined` (a JOIN may return a record several times)
  # - `times`: the number of statements that returned them
  # - `root`: the first model that was loaded at the same site
  # - `order`: the number of events observed before
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
