# frozen_string_literal: true

module Castellan
  class Keeper
    # Reads one collection through the record layer: the ids and their versions first, then the kept records, then the rows of only
    # those that are not kept, and puts the bytes together.
    #
    # A record's key holds its own version and that of every other table that the document reads, so an edit of one record makes one
    # stale, and an edit of a related table all of them. Where a record's bytes hold something of another record of the same table,
    # an edit of that table makes all of them stale. Versions are read before the rows. What cannot be put together (a record that
    # went away meanwhile, bytes that are no record, no exact version) is a document written anew.
    class RecordFetch
      # "CR", the format, a zero | size of the record | number of included; then size of key, size of bytes, key, bytes for each
      MAGIC = "CR\x01\x00".b.freeze
      private_constant :MAGIC

      def initialize(document, layer, versions, parts)
        @document = document
        @layer = layer
        @versions = versions
        @parts = parts
      end

      # @return [Serialize::Output]
      def call
        keys = record_keys or return @document.write
        found = @layer.fetch_many(keys.values) { |missing| write(keys.invert.values_at(*missing), keys) }
        records = found.map { |bytes| bytes && unpack(bytes) }
        records.all? ? Serialize::Output.new(assemble(records, keys.keys), []) : @document.write
      end

      private

      def record_keys
        table, others = @document.own_table_and_others
        token = @versions.current(others.map { |name| Versions::Dependency.new(name) }) or return
        ids = @document.ids
        versions = @versions.record_versions(table, ids) or return
        shared = [*@parts, token, @document.definition.name, @document.plan.signature, @document.surroundings, Serialize.escape]
        ids.to_h { |id| [id, Cache::Key.for([*shared, id, versions.fetch(id)])] }
      end

      def write(ids, keys)
        @document.write_each(ids).to_h { |id, data, included| [keys.fetch(id), pack(data, included)] }
      end

      def pack(data, included)
        bytes = [MAGIC, data.bytesize, included.size].pack("a4L>L>") << data.b
        included.each { |key, text| bytes << [key.bytesize, text.bytesize].pack("L>L>") << key.b << text.b }
        bytes
      end

      def unpack(bytes)
        return if bytes.bytesize < 12

        magic, size, count = bytes.unpack("a4L>L>")
        included, finish = unpack_included(bytes, 12 + size, count) if magic == MAGIC
        [text(bytes, 12, size), included] if finish == bytes.bytesize
      end

      def unpack_included(bytes, position, count)
        included = []
        while included.size < count && position + 8 <= bytes.bytesize
          key_size, text_size = bytes.byteslice(position, 8).unpack("L>L>")
          included << [text(bytes, position + 8, key_size), text(bytes, position + 8 + key_size, text_size)]
          position += 8 + key_size + text_size
        end
        [included, included.size == count ? position : nil]
      end

      def text(bytes, position, size)
        bytes.byteslice(position, size).to_s.force_encoding(Encoding::UTF_8)
      end

      def assemble(records, ids)
        plan = @document.plan
        primary = ids.map { |id| "#{plan.root.definition.type}/#{id}" }
        Serialize::Assembly.call(plan.format, records, primary: primary, compound: plan.compound?, tail: @document.tail(ids))
      end
    end
  end
end
