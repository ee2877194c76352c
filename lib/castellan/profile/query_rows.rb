# frozen_string_literal: true

module Castellan
  module Profile
    # Builds the queries of a {Result} from a {Recorder}: SQL, frames as text, index of the finding.
    #
    #   QueryRows.new(recorder, findings, from_ns: started_ns).to_table.to_a   # => [{ at_ns: 120_000, … }]
    #
    # A recorder shares Strings between statements, so lookups compare objects by identity, not by bytes.
    class QueryRows
      LONGEST = 10_000

      # @param findings [Array<Finding>]
      # @param from_ns [Integer] start of the profile; `at_ns` counts from it
      # @param literals [Boolean] true keeps the SQL with its literal values
      def initialize(recorder, findings, from_ns:, literals: false)
        @recorder = recorder
        @findings = findings
        @from_ns = from_ns
        @literals = literals
        @texts = []
        @frames = []
        @known = Hash.new { |places, text| places[text] = @texts.push(text).size - 1 }
        @places = Hash.new { |places, text| places[text] = @known[cut(text)] }.compare_by_identity
        @stacks = Hash.new { |stacks, sites| stacks[sites] = @frames.push(sites.map { |site| CallSite.frame(site) }).size - 1 }
        @indexes = {}.compare_by_identity
      end

      # @return [QueryTable]
      def to_table
        statements = @recorder.log.each_slice(Recorder::FIELDS).sort_by.with_index { |statement, index| [statement[2], index] }
        QueryTable.new(texts: @texts, frames: @frames, cells: statements.map { |statement| cells(*statement) }.join(","))
      end

      private

      # @return [String] the cells of one query, comma-separated, see {QueryTable}
      def cells(text, fingerprint, started_ns, duration_ns, rows, cached, sites, owner, association)
        place = @places[fingerprint]
        "#{started_ns - @from_ns},#{duration_ns},#{rows || "null"},#{cached},#{@literals ? @places[text] : place},#{place}," \
          "#{@stacks[sites]},#{index(fingerprint, owner, association) || "null"}"
      end

      # A finding covers one fingerprint through one association; for a polymorphic association, several
      # fingerprints.
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
