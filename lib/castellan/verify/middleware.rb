# frozen_string_literal: true

module Castellan
  module Verify
    # Verifies a sample of requests, and serves the document from models if the two differ.
    #
    #   use Castellan::Verify::Middleware, rate: 0.001,
    #                                      report: ->(difference) { MyErrorTracker.notify(difference.to_s) }
    #
    # A verified request runs a query per record and relationship, so begin with a small rate. Differences
    # contain values of the records and are passed to `report` only. `CASTELLAN=off` disables it.
    class Middleware
      # @param rate [Float] the share of requests that are verified, from 0 to 1
      # @param report [#call] called with each {Difference}
      # @param random [#rand] replaced in tests
      # @raise [ConfigurationError]
      def initialize(app, rate:, report:, random: Random)
        @app = app
        @rate = Float(rate, exception: false)
        OptionCheck.check(self.class, :rate, rate, "a share from 0 to 1", 0.01) { @rate&.finite? && @rate.between?(0, 1) }
        unless report.respond_to?(:call)
          raise ConfigurationError, "#{self.class} report: must respond to call, got #{OptionCheck.shown(report)}; write for example " \
                                    "report: ->(difference) { Rails.logger.warn(difference.to_s) }"
        end

        @report = report
        @random = random
        freeze
      end

      def call(env)
        return @app.call(env) if Castellan.off? || @random.rand >= @rate

        result = Verify.call { @app.call(env) }
        result.differences.each { |difference| report(difference, env) }
        result.value
      end

      private

      # An error tracker that fails must not change the response. The log gets no difference, because it contains values.
      def report(difference, env)
        @report.call(difference)
      rescue StandardError => error
        env["rack.errors"]&.puts("Castellan could not report a difference: #{error.full_message(highlight: false)}")
      end
    end
  end
end
