# frozen_string_literal: true

module Castellan
  class Document
    # Writes one piece of a {Stream}, and releases rows and connection before it returns the bytes.
    #
    #   piece = StreamPiece.new(rendering, adapter, rendering.plan)
    #   piece.primary(scope) { |found, rows| … }   # => [bytes of the primary records, end of the batch]
    #   StreamPiece.of_node(rendering, adapter, 1).records(%w[7 8])   # => { "7" => bytes, "8" => bytes }
    class StreamPiece
      # Separates records while their placeholders are filled in one batch; JSON cannot contain it.
      BETWEEN = "\x1e"
      private_constant :BETWEEN

      # @param index [Integer] the position of a node below the primary data
      # @return [StreamPiece] for the node's records with linkage, without included records
      def self.of_node(rendering, adapter, index)
        plan = rendering.plan.derive([:alone, index]) { alone(rendering.plan, rendering.plan.nodes[index]) }
        new(rendering, adapter.related(plan.root.definition.model), plan)
      end

      def self.alone(plan, node)
        Plan::FetchPlan.new(root: node.alone, format: plan.format, signature: "#{plan.signature} #{node.path} alone")
      end
      private_class_method :alone

      def initialize(rendering, adapter, plan)
        @rendering = rendering
        @adapter = adapter
        @plan = plan
      end

      # @yieldparam found [Array] see {Serialize::RubyEncoder.encode_part}
      # @yieldparam rows [Array<Array>, PG::Result]
      # @return [Array(String, Rows::Batches::End)]
      def primary(scope)
        output, ended = read(scope) do |row_set, template|
          output, found = rendering { Serialize.encoder.encode_part(row_set, template) }
          rows = row_set.tables.first.rows
          yield found, rows
          [output, Rows::Batches::End.of(rows)]
        end
        [fill(output), ended]
      end

      # @return [Hash{String => String}] bytes by id, without records that were deleted meanwhile
      def records(ids)
        column = @plan.root.definition.id_column
        values = @adapter.types.integer?(column) ? ids.map(&:to_i) : ids
        written = read(Rows::Ids::Chosen.new(nil, values, column)) do |row_set, template|
          rendering { Serialize.encoder.encode_each(row_set, template) }
        end
        return written.to_h { |id, bytes| [id, bytes] } if @plan.holes.empty?

        written.map(&:first).zip(fill(joined(written)).split(BETWEEN)).to_h
      end

      private

      def rendering(&block) = Recording.span(:render, @plan.root.definition.name, &block)

      def read(scope)
        @adapter.apart do
          row_set = @rendering.rows_of(@plan, @adapter, scope)
          yield row_set, Serialize.template(@plan)
        ensure
          row_set&.release
        end
      end

      def fill(output)
        @plan.holes.empty? ? output.body : output.fill(ViewerBlocks.for(@plan, @adapter), @rendering.viewer)
      end

      def joined(written)
        body = String.new(encoding: Encoding::UTF_8)
        holes = written.flat_map do |_, bytes, own|
          start = body.bytesize
          body << bytes << BETWEEN
          own.each_slice(3).flat_map { |offset, hole, id| [start + offset, hole, id] }
        end
        Serialize::Output.new(body, holes)
      end
    end
  end
end
