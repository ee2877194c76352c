# frozen_string_literal: true

module Castellan
  class Document
    # Streams a document as a Rack body, in pieces, so that its memory does not grow with its length.
    #
    #   stream = UserResource.document(User.active, include: "roles").stream
    #   [stream.status, stream.headers, stream]      # Rack; the same bytes as to_json
    #   stream.each { |bytes| io.write(bytes) }
    #
    # Reads 1,000 primary records at a time, with their relationships, in the order of their key. `included`
    # comes last; until then only the ids of included records are in memory. The connection is released
    # between two pieces, so that a slow client does not hold it; later pieces may then show a write that
    # happened in between (no record comes twice). With `snapshot: true`, one transaction reads the whole
    # document and holds the connection until the last byte.
    #
    # If the scope has its own order, one statement reads its ids, then the records are read by id.
    # Documents of one record, of a page, of several types, from the cache, with a scope that
    # groups rows, or compared by `Castellan.verify` are written in one piece. There is no entity
    # tag, because it would require the body.
    class Stream
      SIZE = 1_000
      MOST_INCLUDED = 100_000
      UNSWEPT = 750_000
      private_constant :UNSWEPT, :SIZE, :MOST_INCLUDED

      # @param document [Document]
      # @param size [Integer] the number of primary records to read at a time
      # @param snapshot [Boolean] whether to read the whole document in one transaction
      # @param most_included [Integer] the number of included records whose ids may be in memory
      # @raise [ConfigurationError] if a number is not a whole number above 0
      def initialize(document, size: SIZE, snapshot: false, most_included: MOST_INCLUDED)
        @document = document
        @rendering = document.rendering
        @adapter = @rendering.adapter
        @size = OptionCheck.whole("Castellan::Document#stream", :size, size, SIZE)
        @snapshot = snapshot
        @most_included = OptionCheck.whole("Castellan::Document#stream", :most_included, most_included, MOST_INCLUDED)
        @closed = false
      end

      # @return [Boolean] whether it is written in pieces
      def divided?
        @whole.nil? && divisible? && !compared?
      end

      # Writes the document while `Castellan.verify` runs; the server reads the body afterwards.
      # @return [String, nil] nil if it is written in pieces
      def whole
        @whole ||= divided? ? nil : @document.to_json
      end

      def status
        divided? ? 200 : @document.status
      end

      # @return [Hash{String => String}] the document's headers without the entity tag
      def headers
        { "content-type" => @rendering.media_type, "cache-control" => @document.cache_control, "vary" => "accept" }
      end

      # An error in the first piece is raised before any byte is yielded; an
      # error in a later piece ends the body.
      # @yieldparam bytes [String] UTF-8
      # @raise [TooManyIncluded]
      # @raise [EncodingError]
      def each(&block)
        return enum_for(:each) unless block

        outside = @document.outside(&block)
        @document.there do
          next outside.call(whole) unless divided?

          @snapshot ? @adapter.snapshot { write(&outside) } : write(&outside)
        end
        nil
      end

      # Ends {#each} before its next piece, because the client has disconnected.
      def close
        @closed = true
      end

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

      # Included records are read by id, which requires a model and a key of one column.
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

      # Runs the GC early: the written pieces are young and large, and Ruby would wait for 16 MB or more.
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
