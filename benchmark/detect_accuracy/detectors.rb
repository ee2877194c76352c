# frozen_string_literal: true

module DetectAccuracy
  # Runs a detector on a piece of code and returns whether it found a repetition.
  #
  #   Detectors.of("bullet").call(sample, world)   # => { found: true, exact: nil }
  #
  # Each detector needs its own process, because detectors change ActiveRecord.
  module Detectors
    # Also compares the whole label: kind, number of statements, association and line.
    class Castellan
      def initialize = require_relative("../../test/detect/accuracy/judged")
      def sees?(_group) = true

      def call(sample, world)
        judged = Accuracy::Judged.new(sample, world)
        { found: judged.findings.any?(&:repeats?), exact: judged.right? }
      end
    end

    # Compares only repetitions, because Bullet needs more than one request to find unused eager loads.
    class Bullet
      def initialize
        require "bullet"
        ::Bullet.enable = true
        ::Bullet.unused_eager_loading_enable = false
      end

      def sees?(group) = group == "ActiveRecord"

      def call(sample, world)
        ::Bullet.start_request
        sample.run(world)
        ::Bullet.perform_out_of_channel_notifications if ::Bullet.notification?
        { found: ::Bullet.notification? || false }
      ensure
        ::Bullet.end_request
      end
    end

    # Uses the defaults: two statements with the same fingerprint and the same stack.
    class Prosopite
      def initialize
        require "prosopite"
        ::Prosopite.backtrace_cleaner = ActiveSupport::BacktraceCleaner.new
        ::Prosopite.enabled = true
      end

      # Prosopite observes only ActiveRecord.
      def sees?(group) = group == "ActiveRecord"

      def call(sample, world)
        found = ::Prosopite.n_plus_one_queries { sample.run(world) }
        { found: found.any? }
      end
    end

    ALL = { "castellan" => Castellan, "bullet" => Bullet, "prosopite" => Prosopite }.freeze

    def self.of(name) = ALL.fetch(name).new
  end
end
