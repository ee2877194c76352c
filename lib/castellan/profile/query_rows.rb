# frozen_string_literal: true

module Castellan
  module Profile
    # What a {Recorder} kept of statements as the rows of a {Result}: texts without literals, frames as texts, and the finding to which
    # each belongs.
    #
    #   QueryRows.new(recorder, findings, from_ns: started_ns).to_a   # => [{ at_ns: 120_000, sql: "select …", … }]
    #
    # Texts are shared: a hundred statements of one shape from one line are a hundred hashes and one text each. A recorder shares them, too,
    # so what was made of one is looked up by the object and not by its bytes.
    class QueryRows
      LONGEST = 10_000

      # @param findings [Array<Finding>]
      # @param from_ns [Integer] what `at_ns` counts from
      # @param literals [Boolean] whether `sql` is the text as it was sent
      def initialize(recorder, findings, from_ns:, literals: false)
        @recorder = recorder
        @findings = findings
        @from_ns = from_ns
        @literals = literals
        @frames = Hash.new { |frames, sites| frames[sites] = sites.map { |site| CallSite.frame(site) }.freeze }
        @cut = Hash.new { |cuts, text| cuts[text] = cut(text) }.compare_by_identity
        @indexes = {}.compare_by_identity
      end

      # @return [Array<Hash>] in the order in which the statements began
      def to_a
        log = @recorder.log
        rows = Array.new(log.size / Recorder::FIELDS) { |number| row(log, number * Recorder::FIELDS) }
        sorted?(rows) ? rows : rows.sort_by { |row| row[:at_ns] }
      end

      private

      def row(log, at)
        fingerprint = log[at + 1]
        shape = @cut[fingerprint]
        { at_ns: log[at + 2] - @from_ns, duration_ns: log[at + 3], rows: log[at + 4], cached: log[at + 5],
          sql: @literals ? @cut[log[at]] : shape, fingerprint: shape, frames: @frames[log[at + 6]],
          finding: index(fingerprint, log[at + 7], log[at + 8]) }
      end

      # Statements are told when they end, so only those that lie within another come before it.
      def sorted?(rows)
        rows.each_cons(2).all? { |one, other| one[:at_ns] <= other[:at_ns] }
      end

      # A finding is of one shape through one association; a polymorphic association is one finding of several shapes.
      def index(fingerprint, owner, association)
        return if @findings.empty?

        walks = (@indexes[fingerprint] ||= {}.compare_by_identity)[owner] ||= {}
        walks.fetch(association) do
          through = "#{owner}##{association}" if association
          walks[association] = @findings.index { |finding| of?(finding, fingerprint, through) }
        end
      end

      def of?(finding, fingerprint, through)
        return true if through && finding.association == through

        finding.fingerprint == fingerprint && (through.nil? || finding.association.nil?)
      end

      def cut(text)
        short = text.bytesize > LONGEST ? "#{text.byteslice(0, LONGEST).scrub("")} …" : text
        short.encoding == Encoding::UTF_8 && short.valid_encoding? ? -short : -short.dup.force_encoding(Encoding::UTF_8).scrub("?")
      end
    end
  end
end
