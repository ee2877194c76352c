# frozen_string_literal: true

module Castellan
  module Serialize
    # Fills the placeholders (holes) of a body. Documents are cached in this form. Frozen.
    #
    #   blanks = Blanks.of([76, 0, "7"])
    #   blanks.cuts                           # => "a76a*", a String#unpack format that cuts at the holes
    #   values = blanks.values(batches, ada)  # => ["true"]
    #   blanks.fill(body, values)             # => '{"data":[{"type":"posts", … "read_before":true}}]}'
    Blanks = Struct.new(:cuts, :numbers, :ids) do
      # @param holes [Array] see {Output}
      def self.of(holes)
        cuts = +""
        position = 0
        holes.each_slice(3) do |offset, _, _|
          cuts << "a#{offset - position}"
          position = offset
        end
        numbers, ids = holes.each_slice(3).map { |_, number, id| [number, id] }.transpose
        new((cuts << "a*").freeze, numbers || [], ids || [])
      end

      def initialize(*)
        super
        freeze
      end

      # @param batches [Array<#call>] one per position in plan.holes; takes the ids (Strings)
      #   of the document's records and the viewer; returns the ids for which the attribute
      #   is true, or a Hash from id to JSON
      # @param viewer [Object, nil]
      # @return [Array<String>] JSON for each hole
      def values(batches, viewer)
        return answers(batches.first, ids, viewer) if batches.size == 1

        found = batches.each_with_index.map do |batch, number|
          own = ids.select.with_index { |_, index| numbers[index] == number }.uniq
          own.zip(answers(batch, own, viewer)).to_h
        end
        ids.each_with_index.map { |id, index| found[numbers[index]].fetch(id) }
      end

      # @param values [Array<String>] see {#values}
      # @return [String]
      def fill(body, values)
        (Native.fill(body, cuts, values) if defined?(Native)) || interleave(body, values)
      end

      # Implements {#fill} without the C extension.
      def interleave(body, values)
        buffer = String.new(capacity: body.bytesize + (values.size * 8))
        parts = body.unpack(cuts)
        index = 0
        while (value = values[index]) # `while`, because a block would cost as much as appending
          buffer << parts[index] << value
          index += 1
        end
        (buffer << parts[index]).force_encoding(Encoding::UTF_8)
      end

      # @param values [Array<String>] see {#values}
      # @return [String] the values in one string; JSON contains no NUL
      def self.joined(values) = values.join("\0")

      private

      def answers(batch, ids, viewer)
        return [] if ids.empty?

        answer = batch.call(ids.uniq, viewer)
        return ids.map { |id| answer[id] } if answer.is_a?(Hash)

        truths = Hash.new("false")
        answer.each { |id| truths[id.to_s] = "true" }
        ids.map { |id| truths[id] }
      end
    end
  end
end
