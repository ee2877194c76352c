# frozen_string_literal: true

require_relative "../castellan"
require_relative "finding"
require_relative "lazy_body"
require_relative "instrument"
require_relative "detect/conditions"
require_relative "detect/shape"
require_relative "detect/pieces"
require_relative "detect/group"
require_relative "detect/singles"
require_relative "detect/tally"
require_relative "detect/model_association"
require_relative "detect/preload"
require_relative "detect/active_record_models"
require_relative "detect/sequel_models"
require_relative "detect/links"
require_relative "detect/parents"
require_relative "detect/words"
require_relative "detect/source"
require_relative "detect/selection"
require_relative "detect/fix"
require_relative "detect/fix/loading"
require_relative "detect/fix/chain"
require_relative "detect/fix/look_up"
require_relative "detect/fix/scoped_one"
require_relative "detect/fixes"
require_relative "detect/batch_reads"
require_relative "detect/verdict"
require_relative "detect/evidence"
require_relative "detect/report"
require_relative "detect/known_findings"
require_relative "detect/growth"
require_relative "detect/assertions"
require_relative "detect/watched_request"
require_relative "detect/middleware"
require_relative "detect/production"

module Castellan
  # Finds repeated queries, with the line that sends them and the code to write instead.
  #
  #   findings = Castellan::Detect.watch { User.all.map { |user| user.employee&.number } }
  #   findings.first.location   # => "app/models/report.rb:12"
  #   findings.first.fix        # => "add .preload(:employee) where the users are loaded: app/models/report.rb:12"
  #
  # Use {Middleware} in development and {Assertions} in tests. Observes the calling thread and the threads
  # that it starts. With `CASTELLAN=off` it reports nothing.
  module Detect
    MODELS = [ActiveRecordModels, SequelModels].freeze

    class << self
      # @param repeats [Integer] the number of queries of the same shape that make a finding
      # @param min_ms [Numeric] the minimum time from the first to the last of them, in milliseconds
      # @param slow_ms [Numeric, nil] report a single query that takes at least this many milliseconds; nil
      #   disables this
      # @yield the code to observe
      # @return [Array<Finding>] by descending count
      def watch(repeats: 2, min_ms: 0, slow_ms: 500, &block)
        tally = Tally.new(slow_ns: slow_ms && (slow_ms * 1_000_000).to_i)
        Instrument.record(tally, &block)
        Verdict.new(tally, repeats: repeats, min_ns: (min_ms * 1_000_000).to_i).findings
      end

      # Measures how the number of queries grows: runs the block with n, 2n and 4n records, after one warm-up
      # run.
      # @param scale [#call, nil] creates that many more records; without it, the block receives the number
      # @param by [Integer] n
      # @yield [count] the code to measure; if its result has a size (a body, a list), the size must grow with
      #   the data
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

      # @param name [String, nil]
      # @return [Class, nil] the model with this name; nil if the class no longer exists
      def model(name)
        found = name && Object.const_get(name)
        found if models(found)
      rescue NameError
        nil
      end
    end
  end
end
