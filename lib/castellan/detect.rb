# frozen_string_literal: true

require "castellan"
require "castellan/finding"
require "castellan/load"
require "castellan/instrument"
require "castellan/detect/conditions"
require "castellan/detect/shape"
require "castellan/detect/pieces"
require "castellan/detect/cached_answers"
require "castellan/detect/group"
require "castellan/detect/singles"
require "castellan/detect/tally"
require "castellan/detect/model_association"
require "castellan/detect/preload"
require "castellan/detect/active_record_models"
require "castellan/detect/sequel_models"
require "castellan/detect/links"
require "castellan/detect/load_tree"
require "castellan/detect/parents"
require "castellan/detect/words"
require "castellan/detect/source"
require "castellan/detect/selection"
require "castellan/detect/fix"
require "castellan/detect/fix/loading"
require "castellan/detect/fix/chain"
require "castellan/detect/fix/look_up"
require "castellan/detect/fix/scoped_one"
require "castellan/detect/fixes"
require "castellan/detect/batch_reads"
require "castellan/detect/verdict"
require "castellan/detect/eager_use"
require "castellan/detect/evidence"
require "castellan/detect/report"
require "castellan/detect/known_findings"
require "castellan/detect/growth"
require "castellan/detect/assertions"
require "castellan/detect/watched_request"
require "castellan/detect/middleware"
require "castellan/detect/production"

module Castellan
  # Finds repeated queries, with the line that sends them and the code to write instead.
  #
  #   findings = Castellan::Detect.watch { User.all.map { |user| user.employee&.number } }
  #   findings.first.location   # => "app/models/report.rb:12"
  #   findings.first.fix        # => "add .preload(:employee) where the users are loaded: app/models/report.rb:12"
  #
  # In development use {Middleware}; in tests include {Assertions}. Observes the calling thread and the
  # threads that it starts. With `CASTELLAN=off` it finds nothing.
  module Detect
    MODELS = [ActiveRecordModels, SequelModels].freeze

    class << self
      # @param repeats [Integer] the number of statements of one shape that make a finding
      # @param min_ms [Numeric] the minimum time from the first to the last of them, in milliseconds
      # @param slow_ms [Numeric, nil] the duration in milliseconds from which a single statement is a finding;
      #   nil disables this
      # @yield runs the code to observe
      # @return [Array<Finding>] by descending count
      def watch(repeats: 2, min_ms: 0, slow_ms: 500, &block)
        tally = Tally.new(slow_ns: slow_ms && (slow_ms * 1_000_000).to_i)
        Instrument.record(tally, &block)
        Verdict.new(tally, repeats: repeats, min_ns: (min_ms * 1_000_000).to_i).findings
      end

      # Runs the block with n, 2n and 4n records, after one run to warm up, and fits the number of queries.
      # @param scale [#call, nil] creates that many more records; without it, the block receives the number of
      #   records
      # @param by [Integer] n
      # @yield [count] runs the work; a result with a size (a body, a list) must grow with the data
      # @return [Growth]
      # @raise [ConfigurationError] if `by` is not positive, or if there is neither `scale` nor a block
      #   parameter
      def growth(scale: nil, by: 2, &work) = Growth.measure(scale: scale, by: by, work: work)

      # Creates an observer for the requests of a production server.
      # @return [Production]
      # @see Production#initialize
      def production(...) = Production.new(...)

      # @param owner [Class, nil]
      # @return [Module, nil] {ActiveRecordModels} or {SequelModels}, if the class is one of their models
      def models(owner) = MODELS.find { |models| models.model?(owner) }
    end
  end
end
