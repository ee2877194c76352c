# frozen_string_literal: true

module Castellan
  class Document
    # A document as a Rack body that is read and written piece by piece: the memory it takes does not grow with its length.
    #
    #   stream = UserResource.document(User.active, include: "roles").stream
    #   [stream.status, stream.headers, stream]      # Rack; the same bytes as to_json
    #   stream.each { |bytes| io.write(bytes) }
    #
    # Primary records are read 1,000 at a time, in the order of their key, with their relationships. `included` comes last; until then
    # only the ids of included records are in memory. The connection is released between two pieces, so a slow client holds none; a
    # write in between may be visible in later pieces only (no record comes twice). With `snapshot: true` one transaction reads the
    # whole document and holds the connection until the last byte.
    #
    # A scope with an order of its own is read in that order: one statement reads its ids, then the records are read by id. A document
    # of one record, of a page, of several types or from the cache is written whole, and so is one whose scope groups rows or that
    # `Castellan.verify` compares. There is no entity tag, because it would need the body.
    class Stream
      SIZE = 1_000
      MOST_INCLUDED = 100_000
      UNSWEPT = 750_000
      private_constant :UNSWEPT, :SIZE, :MOST_INCLUDED

      # @param document [Document]
      # @param size [Integer] primary records to read at a time
      # @param snapshot [Boolean] reads the whole document in one transaction
      # @param most_included [Integer] included records whose ids may be held in memory
      def initialize(document, size: SIZE, snapshot: false, most_included: MOST_INCLUDED)
        @document = document
        @rendering = document.rendering
        @adapter = @rendering.adapter
        @size = size
        @snapshot = snapshot
        @most_included = most_included
        @closed = false
      end

      # @return [Boolean] whether it is written in pieces
      def divided?
        @whole.nil? && divisible? && !compared?
      end

      # Writes the document while `Castellan.verify` runs; the server asks for the bytes afterwards.
      # @return [String, nil] nil where it is written in pieces
      def whole
        @whole ||= divided? ? nil : @document.to_json
      end

      # @return [Integer]
      def status
        divided? ? 200 : @document.status
      end

      # @return [Hash{String => String}] the document's headers without the entity tag
      def headers
        { "content-type" => @rendering.media_type, "cache-control" => @document.cache_control, "vary" => "accept" }
      end

      # An error in the first piece is raised before any byte is yielded; an error in a later piece ends the body there.
      # @yieldparam bytes [String] UTF-8
      # @raise [TooManyIncluded]
      # @raise [EncodingError]
      def each(&block)
        return enum_for(:each) unless block
        return yield whole unless divided?

        @snapshot ? @adapter.snapshot { write(&block) } : write(&block)
        nil
      end

      # Ends {#each} before its next piece, because the client has gone.
      def close
        @closed = true
      end

      # @return [Boolean]
      def closed?
        @closed
      end

      private

      def divisible?
        @rendering.collection? && !@rendering.plan.several_types? && @rendering.request.page.nil? && !@rendering.kept? &&
          batches.possible? && found_by_id?
      end

      def compared?
        verification = Document.verification or return false
        @compared ||= {}.compare_by_identity
        @compared.fetch(verification) { @compared[verification] = verification.takes?(@adapter.scopes.count(@rendering.paged)) }
      end

      # Included records are read by their ids, which needs a model and a key of one column.
      def found_by_id?
        @rendering.plan.nodes.all? { |node| node.definition.model && node.definition.id_column.is_a?(Symbol) }
      end

      def batches
        @batches ||= apart { Rows::Batches.new(@adapter, @rendering.paged, @rendering.definition.id_column, @size) }
      end

      # ActiveRecord before 7.2 may lease a connection to build a statement.
      def apart(&block)
        @adapter.apart(&block)
      end

      def write(&block)
        nested = @rendering.plan.format == :nested
        included = IncludedIds.new(@rendering.plan, @most_included)
        list(nested ? "[" : '{"data":[', block) { |put| data(included, put) }
        list(',"included":[', block) { |put| related(included, put) } if @rendering.plan.compound? && !nested
        yield "#{@rendering.tail(0)}}" unless nested || @closed
      end

      # Puts commas between the pieces and brackets around them.
      def list(open, block)
        before = open
        yield lambda { |bytes|
          next if bytes.empty?

          block.call(before + bytes)
          before = ","
          sweep(bytes.bytesize)
        }
        block.call(before == open ? "#{open}]" : "]") unless @closed
      end

      # Collects written pieces early: they are young and large, and Ruby would wait for 16 MB and more.
      def sweep(bytesize)
        @unswept = (GC.count == @collections ? @unswept : 0) + bytesize
        @collections = GC.count
        GC.start(full_mark: false) if @unswept > UNSWEPT
      end

      def data(included, put)
        piece = StreamPiece.new(@rendering, @adapter, @rendering.plan)
        batches.each do |scope|
          next if @closed

          bytes, ended = piece.primary(scope) { |found, rows| included.add(found, rows) }
          put.call(bytes)
          ended
        end
      end

      def related(included, put)
        pieces = Hash.new { |made, index| made[index] = StreamPiece.of_node(@rendering, @adapter, index) }
        included.each_slice(@size) do |records|
          break if @closed

          written = records.group_by(&:first).to_h { |index, some| [index, pieces[index].records(some.map(&:last))] }
          put.call(records.filter_map { |index, id| written[index][id] }.join(","))
        end
      end
    end
  end
end
