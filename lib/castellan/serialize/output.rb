# frozen_string_literal: true

module Castellan
  module Serialize
    # Holds an encoder's bytes and the positions of per-viewer attributes.
    #
    #   output.body    # => '{"data":[{"type":"posts","id":"7","attributes":{…,"read_before":}}]}'
    #   output.holes   # => [76, 0, "7"]   byte offset, position in plan.holes, record id; ascending triples
    #
    # A body with holes is not valid JSON until {#fill}.
    Output = Struct.new(:body, :holes) do
      # @return [Blanks]
      def blanks
        @blanks ||= Blanks.of(holes)
      end

      # Fills the holes without parsing, with one call per attribute.
      # @param batches [Array<#call>] see {Blanks#values}
      # @return [String] the complete document; `body` itself if it has no holes
      def fill(batches, viewer)
        holes.empty? ? body : blanks.fill(body, blanks.values(batches, viewer))
      end
    end
  end
end
