# frozen_string_literal: true

require "castellan"
require "castellan/finding"
require "castellan/load"
require "castellan/instrument"
require "castellan/detect/conditions"
require "castellan/detect/shape"
require "castellan/detect/pieces"
require "castellan/detect/group"
require "castellan/detect/singles"
require "castellan/detect/tally"
require "castellan/detect/link"
require "castellan/detect/preload"
require "castellan/detect/active_record_models"
require "castellan/detect/sequel_models"
require "castellan/detect/links"
require "castellan/detect/load_tree"
require "castellan/detect/parents"
require "castellan/detect/words"
require "castellan/detect/source"
require "castellan/detect/bulk"
require "castellan/detect/selection"
require "castellan/detect/fix"
require "castellan/detect/fix/loading"
require "castellan/detect/fix/look_up"
require "castellan/detect/fix/part"
require "castellan/detect/fixes"
require "castellan/detect/batches"
require "castellan/detect/verdict"
require "castellan/detect/eager_use"
require "castellan/detect/evidence"
require "castellan/detect/evidence/sampled"
require "castellan/detect/report"
require "castellan/detect/known_findings"
require "castellan/detect/growth"
require "castellan/detect/assertions"
require "castellan/detect/watched_request"
require "castellan/detect/middleware"
require "castellan/detect/production"

module Castellan
  # Finds queries that repeat, down to the line, and says what to write instead.
  #
  #   findings = Castellan::Detect.watch { User.all.map { |user| user.employee&.number } }
  #   findings.first.location   # => "app/models/report.rb:12"
  #   findings.first.fix        # => "add .preload(:employee) where the users are loaded: app/models/report.rb:12"
  #
  # In development put {Middleware} into the stack; in tests include {Assertions}. Watches the thread that calls it and those that it
  # starts. Finds nothing with `CASTELLAN=off`.
  module Detect
    MODELS = [ActiveRecordModels, SequelModels].freeze

    class << self
      # @param repeats [Integer] how many statements of one shape make a finding
      # @param min_ms [Numeric] how long they must take from the first to the last
      # @param slow_ms [Numeric, nil] from how long one statement is a finding by itself; nil: none is
      # @yield the work
      # @return [Array<Finding>] the most statements first
      def watch(repeats: 2, min_ms: 0, slow_ms: 500, &block)
        tally = Tally.new(slow_ns: slow_ms && (slow_ms * 1_000_000).to_i)
        Instrument.record(tally, &block)
        Verdict.new(tally, repeats: repeats, min_ns: (min_ms * 1_000_000).to_i).findings
      end

      # Does the work at three sizes of the data and fits how often each query is sent. The first time warms up.
      # @param scale [#call, nil] makes that many records more; without it the block is told for how many records to work
      # @param by [Integer] how many at first; then twice and four times as many
      # @yield [count] the work; when it returns something with a size (a body, a list), that must grow with the data
      # @return [Growth]
      def growth(scale: nil, by: 2, &work) = Growth.measure(scale: scale, by: by, work: work)

      # Watches requests of a production server.
      # @return [Production]
      # @see Production#initialize
      def production(...) = Production.new(...)

      # @param owner [Class, nil]
      # @return [Module, nil] who knows this class
      def models(owner) = MODELS.find { |models| models.model?(owner) }
    end
  end
end
