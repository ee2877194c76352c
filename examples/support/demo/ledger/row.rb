# frozen_string_literal: true

module Castellan
  module Demo
    class Ledger
      # One step of a story with its figures. Frozen. A missing figure is nil.
      #
      #   row = Row.build(story: "users", step: "baseline", duration_ms: 812.0)
      #   row.leading # => :duration_ms
      #   row.to_h    # => { story: "users", step: "baseline", duration_ms: 812.0, sql_ms: nil, … }
      #
      # Durations are milliseconds, sizes are bytes, and availability is a percentage. `story_value` is the
      # published figure of the step, in the unit of the leading figure. `against` names the step that the
      # verdict compares. {#to_h} omits `reason`, `code`, `command`, `reference` and `against`.
      class Row
        FIELDS = %i[
          story step duration_ms sql_ms queries allocated_objects allocated_bytes retained_objects retained_bytes response_bytes
          requests_per_s mean_ms min_ms max_ms p50_ms p95_ms p99_ms availability concurrency transferred_bytes story_value
          verdict finding environment
        ].freeze
        FOR_READERS = %i[reason code command reference against].freeze
        TEXTS = %i[story step verdict finding environment reason code command against].freeze
        private_constant :FOR_READERS, :TEXTS

        (FIELDS + FOR_READERS).each { |name| define_method(name) { @fields[name] } }

        # @param fields [Hash{Symbol => Object}]
        # @return [Row]
        # @raise [ConfigurationError] for an unknown field, a verdict, a missing story or step, or a value
        #   that is not a number
        def self.build(fields)
          unknown = fields.keys - FIELDS - FOR_READERS
          raise ConfigurationError, "a row has no #{unknown.join(", ")}; it has #{(FIELDS + FOR_READERS).join(", ")}" if unknown.any?
          raise ConfigurationError, "a verdict is derived, not given" if fields[:verdict]

          new(fields)
        end

        # @param measurement [Measurement, nil]
        # @return [Hash{Symbol => Numeric, nil}] the figures, as fields of a row
        def self.measured(measurement)
          return {} unless measurement

          same = %i[queries allocated_objects allocated_bytes retained_objects retained_bytes response_bytes]
          { duration_ms: Figures.milliseconds(measurement.duration_ns), sql_ms: Figures.milliseconds(measurement.sql_ns) }
            .merge(same.to_h { |name| [name, measurement[name]] })
        end

        def initialize(fields)
          @fields = fields.to_h { |name, value| [name, checked(name, value)] }.freeze
          %i[story step].each { |name| raise ConfigurationError, "a row needs a #{name}:" if @fields[name].to_s.empty? }
          freeze
        end

        # @return [Row] a copy with the verdict
        def with_verdict(verdict) = self.class.new(@fields.merge(verdict: verdict))

        # @param name [Symbol] a field
        # @return [Object, nil] the value of the field
        def [](name) = @fields[name]

        # @return [Boolean] whether the step's response is wrong
        def wrong? = !reason.nil?

        # @return [Boolean] false for a figure for comparison, which is not a step of the story
        def step? = !reference

        # @return [Array<String>] sentences to show beside the figures
        def remarks
          [("wrong: #{reason}" if wrong?), finding, failures].compact
        end

        # @return [Symbol, nil] the figure that the verdict is based on
        def leading
          %i[requests_per_s duration_ms].find { |name| self[name] }
        end

        # @return [Hash{Symbol => Object}] all FIELDS
        def to_h = FIELDS.to_h { |name| [name, self[name]] }

        private

        def failures
          "only #{Figures.percent(availability)} of the requests succeeded" if availability && availability < 100
        end

        def checked(name, value)
          return value if value.nil? || name == :reference || (name == :environment && value.is_a?(Hash))
          return value.to_s if TEXTS.include?(name)
          return value if value.is_a?(Integer) || (value.is_a?(Float) && value.finite?)

          raise ConfigurationError, "#{name}: must be a number or nil, got #{value.inspect}"
        end
      end
    end
  end
end
