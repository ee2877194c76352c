# frozen_string_literal: true

module Castellan
  class Keeper
    # Remembers the values of one viewer in one document, and the entity tags of that viewer's responses. Kept in
    # this process, never in the store.
    #
    #   known = keeper.known_values(key, versions)
    #   known.etag("gzip")                  # => '"Vb0…-gzip"'
    #   known.values(blanks) { read }       # => ["true", "false"]
    class ViewerValues
      LONGEST = 4_096 # bytes; more are not kept
      private_constant :LONGEST

      # @param key [String] of the viewer's bytes, see {Cache::Key}
      def initialize(key)
        @key = key
        @etags = {}
        @known = nil
      end

      # @param coding [String, nil] one of the few content codings of documents
      # @return [String] the entity tag
      def etag(coding) = @etags[coding] ||= Cache::Key.etag(@key, coding).freeze

      # Threads may overwrite each other's values; each returns those that it found or read.
      # @param blanks [Serialize::Blanks] of the document; one that expires may be rendered again with other records
      # @yieldreturn [Array<String>] the values, read from the database
      # @return [Array<String>] JSON text for each of the blanks
      def values(blanks)
        ids, numbers, values = @known
        return values if ids && ids == blanks.ids && numbers == blanks.numbers

        ActiveRecordThread.clear_query_caches
        values = yield
        @known = [blanks.ids, blanks.numbers, values.map(&:-@).freeze].freeze if values.sum(&:bytesize) <= LONGEST
        values
      end
    end
  end
end
