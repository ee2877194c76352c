# frozen_string_literal: true

module Castellan
  module Profile
    # Builds the queries of a {Result} from recorded statements: SQL, frames as text, index of the finding.
    #
    #   QueryRows.new(recorder.log, findings, from_ns: started_ns).to_a   # => [{ at_ns: 120_000, … }]
    class QueryRows
      LONGEST = 10_000
      private_constant :LONGEST

      # @param statements [Array<Recorder::Statement>]
      # @param findings [Array<Finding>]
      # @param from_ns [Integer] start of the profile; `at_ns` counts from it
      def initialize(statements, findings, from_ns:)
        @statements = statements
        @findings = findings
        @from_ns = from_ns
        @texts = Hash.new { |texts, text| texts[text] = Redaction.text(text, LONGEST) }
        @frames = Hash.new { |frames, sites| frames[sites] = sites.map { |site| CallSite.frame(site) } }
        @indexes = Hash.new { |indexes, key| indexes[key] = index(*key) }
      end

      # @return [Array<Hash>] see {Result#queries}
      def to_a
        @statements.map do |one|
          fingerprint = @texts[one.fingerprint]
          { at_ns: one.started_ns - @from_ns, duration_ns: one.duration_ns, rows: one.rows, cached: one.cached,
            sql: one.sql ? @texts[one.sql] : fingerprint, fingerprint: fingerprint, frames: @frames[one.sites],
            finding: (@indexes[[one.fingerprint, one.owner, one.association]] if @findings.any?) }
        end
      end

      private

      # A finding covers one fingerprint through one association; for a polymorphic association, several
      # fingerprints.
      def index(fingerprint, owner, association)
        through = "#{owner}##{association}" if association
        @findings.index do |finding|
          next true if through && finding.association == through

          finding.fingerprint == fingerprint && (through.nil? || finding.association.nil?)
        end
      end
    end
  end
end
