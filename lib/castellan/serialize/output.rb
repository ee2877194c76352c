# frozen_string_literal: true

module Castellan
  module Serialize
    # What an encoder gives: the bytes, and where the per-viewer attributes belong.
    #
    #   output.body    # => '{"data":[{"type":"posts","id":"7","attributes":{"title":"Keep","read_before":}}]}'
    #   output.holes   # => [76, 0, "7"]   byte offset, position in plan.holes, id of the record; and so on, offsets ascending
    #
    # A body with holes is not JSON until they are filled.
    Output = Struct.new(:body, :holes) do
      # Fills the holes, each attribute in one batch. Bytes are put into bytes: nothing is parsed.
      # @param batches [Array<#call>] one for each position in plan.holes: called with the ids (Strings) of the records that are
      #   in the document and the viewer; answers the ids for which it is true, or a Hash of id to value
      # @return [String] the document, complete; `body` itself when it has no holes
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
