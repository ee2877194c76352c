# frozen_string_literal: true

require "castellan"
require "castellan/finding"
require "castellan/load"
require "castellan/instrument"
require "castellan/detect/shape"
require "castellan/detect/pieces"
require "castellan/detect/group"
require "castellan/detect/tally"
require "castellan/detect/link"
require "castellan/detect/preload"
require "castellan/detect/active_record_models"
require "castellan/detect/sequel_models"
require "castellan/detect/links"
require "castellan/detect/chain"
require "castellan/detect/parents"
require "castellan/detect/words"
require "castellan/detect/cure"
require "castellan/detect/bulk"
require "castellan/detect/loading"
require "castellan/detect/partial_fix"
require "castellan/detect/bulk_fix"
require "castellan/detect/fix"
require "castellan/detect/verdict"
require "castellan/detect/report"
require "castellan/detect/known_findings"
require "castellan/detect/growth"
require "castellan/detect/assertions"
require "castellan/detect/middleware"
require "castellan/detect/production"

module Castellan
  # Finds queries that repeat, down to the line, and says what to write instead.
  #
  #   findings = Castellan::Detect.watch { User.all.map { |user| user.employee&.number } }
  #   findings.first.location   # => "app/models/report.rb:12"
  #   findings.first.fix        # => "add .preload(:employee) where the users are loaded: app/models/report.rb:12"
  #
  # In development put {Middleware} into the stack; in tests include {Assertions}. Watches the thread that calls it.
  # Finds nothing with `CASTELLAN=off`. Not for slow single statements: the profiler shows those.
  module Detect
    MODELS = [ActiveRecordModels, SequelModels].freeze

    class << self
      # @param repeats [Integer] how many statements of one shape make a finding
      # @param min_ms [Numeric] how long they must take from the first to the last
      # @yield the work
      # @return [Array<Finding>] the most statements first
      def watch(repeats: 2, min_ms: 0, &block)
        tally = Tally.new
        Instrument.record(tally, &block)
        Verdict.new(tally, repeats: repeats, min_ns: (min_ms * 1_000_000).to_i).findings
      end

      # Runs the work at three sizes of the data and fits how often each query is sent. The first run warms up.
      # @param scale [#call] makes that many records more
      # @param by [Integer] how many are added at first; then as many again, then twice as many
      # @yield the work; when it returns something with a size (a body, a list), that must grow with the data
      # @return [Growth]
      def growth(scale:, by: 2)
        yield
        added = 0
        runs = [by, by, 2 * by].map do |count|
          scale.call(count)
          added += count
          tally = Tally.new
          result = Instrument.record(tally) { yield }
          Growth::Run.new(added: added, groups: counts(tally), size: size_of(result))
        end
        Growth.new(runs)
      end

      # Watches requests of a production server.
      # @return [Production]
      # @see Production#initialize
      def production(...) = Production.new(...)

      # @param owner [Class, nil]
      # @return [Module, nil] who knows this class
      def models(owner) = MODELS.find { |models| models.model?(owner) }

      private

      def counts(tally)
        tally.groups.group_by { |group| group.shape.fingerprint }.transform_values do |groups|
          [groups.sum { |group| group.count + group.cached }, groups.first.sites.keys.first]
        end
      end

      def size_of(result)
        return result.bytesize if result.is_a?(String)
        return result.body.to_s.bytesize if result.respond_to?(:body)

        result.size if result.respond_to?(:size) && !result.is_a?(Numeric)
      end
    end
  end
end
