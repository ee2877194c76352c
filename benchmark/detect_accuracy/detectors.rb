# frozen_string_literal: true

module DetectAccuracy
  # Runs each detector on a piece of code and returns whether it found a repetition. Each runs in its own process,
  # because they change ActiveRecord.
  #
  #   Detectors.of("bullet").call(sample, world)   # => { found: true, exact: nil }
  module Detectors
    # The whole label is compared, too: kind, number of statements, association and line.
    class Castellan
      def initialize = require_relative("../../test/detect/accuracy/judged")
      def sees?(_group) = true

      def call(sample, world)
        judged = Accuracy::Judged.new(sample, world)
        { found: judged.findings.any?(&:repeats?), exact: judged.right? }
      end
    end

    # Repetition only; unused eager loading needs more than one request to be detected.
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

    # With its defaults: two statements of one fingerprint from one stack.
    class Prosopite
      def initialize
        require "prosopite"
        ::Prosopite.backtrace_cleaner = ActiveSupport::BacktraceCleaner.new
        ::Prosopite.enabled = true
      end

      # It is notified of ActiveRecord's statements only.
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
