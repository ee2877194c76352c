# frozen_string_literal: true

module Castellan
  module Demo
    # Compares the goals with the measured figures of the ledger.
    #
    #   Goals.new(rows).to_a   # => [{ title: …, goal: "≥ 30 ×", measured: "41.2 ×", reached: true }, …]
    class Goals
      PAIRS = [
        ["users", "castellan", "last_login", :duration_ms], ["users", "castellan", "jsonapi_serializer", :duration_ms],
        ["users", "castellan_document_cache", "record_cache", :duration_ms], ["users_1000", "castellan", "last_login", :allocated_objects],
        ["posts", "castellan", "naive", :requests_per_s], ["posts", "castellan_document", "document", :requests_per_s],
        ["posts", "castellan_fragment", "fragment_batched", :requests_per_s], ["posts", "castellan_public", "public", :requests_per_s],
        ["posts", "public", "limit", :requests_per_s], ["posts", "castellan_public", "limit", :requests_per_s],
        ["mail_logs", "castellan_rails", "jsonapi_resources", :requests_per_s],
        ["mail_logs", "castellan_rack", "jsonapi_resources", :requests_per_s],
        ["mail_logs", "castellan_rack", "sequel", :requests_per_s]
      ].freeze
      private_constant :PAIRS

      # Pairs of steps whose rates are compared.
      IN_TURNS = { "document" => "castellan", "castellan_public" => LoadedStory::LIMIT }.freeze

      # @param rows [Array<Hash{Symbol => Object}>] the fields of the ledger's rows, with the ids of their
      #   steps
      def initialize(rows)
        @rows = rows.to_h { |row| [[row[:story], row[:id]], row] }
      end

      # @return [Array<Hash{Symbol => Object}>] the goals for which there are figures
      def to_a
        [
          goal("1,000 users: the Castellan resource beside the eager-loaded ActiveModel::Serializers, time", 30,
               ratio("users_1000", "last_login", "castellan", :duration_ms)),
          goal("1,000 users: the same, allocated objects", 100, ratio("users_1000", "last_login", "castellan", :allocated_objects)),
          goal("posts: Castellan, nothing kept, beside Rails' cached document, rate", 1,
               ratio("posts", "castellan", "document", :requests_per_s)),
          goal("posts: Castellan's document, kept for everybody, beside constant bytes from the same Puma, rate", 0.6,
               ratio("posts", "castellan_public", "limit", :requests_per_s))
        ].compact
      end

      # @return [Array<Hash{Symbol => Object}>] pairs of steps for the report: {story:, step:, against:, on:}
      def ratios
        PAIRS.filter_map do |story, one, other, figure|
          rows = [@rows[[story, one]], @rows[[story, other]]]
          { story: story, step: rows[0][:step], against: rows[1][:step], on: figure } if rows.all?
        end
      end

      private

      def ratio(story, one, other, field)
        values = [one, other].map { |id| @rows.dig([story, id], field) }
        values[0].fdiv(values[1]) if values.all? && !values[1].zero?
      end

      def goal(title, at_least, measured)
        return unless measured

        { title: title, goal: "≥ #{at_least} ×", measured: format(measured < 10 ? "%.2f ×" : "%.1f ×", measured),
          reached: measured >= at_least }
      end
    end
  end
end
