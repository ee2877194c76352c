# frozen_string_literal: true

module Castellan
  module Serialize
    # Holds an encoder's bytes and the positions of per-viewer attributes.
    #
    #   output.body    # => '{"data":[{"type":"posts","id":"7","attributes":{"title":"Keep","read_before":}}]}'
    #   output.holes   # => [76, 0, "7"]   byte offset, position in plan.holes, record id; further triples by ascending offset
    #
    # A body with holes is not valid JSON until {#fill}.
    Output = Struct.new(:body, :holes) do
      # Fills the holes, with one batch per attribute and without parsing.
      # @param batches [Array<#call>] one per position in plan.holes; called with the ids (Strings) of the
      #   document's records and the viewer; returns the ids for which the attribute is true, or a Hash from
      #   id to value
      # @param viewer [Object, nil]
      # @return [String] the complete document; `body` itself if it has no holes
      def fill(batches, viewer)
        return body if holes.empty?

        values = batches.each_index.map { |hole| values_of(batches[hole], ids_of(hole), viewer) }
        splice { |hole, id| values[hole].fetch(id) }
      end

      private

      def ids_of(hole)
        holes.each_slice(3).filter_map { |_, index, id| id if index == hole }.uniq
      end

      def values_of(batch, ids, viewer)
        answer = ids.empty? ? [] : batch.call(ids, viewer)
        return ids.to_h { |id| [id, JSON.generate(answer[id])] } if answer.is_a?(Hash)

        truths = answer.to_h { |id| [id.to_s, true] }
        ids.to_h { |id| [id, truths.key?(id) ? "true" : "false"] }
      end

      def splice
        filled = String.new(capacity: body.bytesize + (holes.size * 2), encoding: Encoding::UTF_8)
        position = 0
        holes.each_slice(3) do |offset, hole, id|
          filled << body.byteslice(position, offset - position) << yield(hole, id)
          position = offset
        end
        filled << body.byteslice(position, body.bytesize - position)
      end
    end
  end
end
