# frozen_string_literal: true

module Castellan
  module Serializer
    # The included records of a document: each once, what it leads to before itself, with the linkage of all the paths that it was
    # reached by.
    #
    #   Included.new(options).of(UserSerializer, users)   # => [{ id: "1", type: :role, … }]
    #
    # Collects the records first and writes them afterwards, because a later path may include another lazy relationship of a record.
    # Walks each record once.
    class Included
      Found = Struct.new(:kind, :record)
      # What records of one serializer are at one place of the include: the relationships that are walked below it, the ids that were
      # there, what was found of their type anywhere, and what writes them.
      Kind = Struct.new(:serializer, :type, :tree, :names, :walked, :known, :writer)
      private_constant :Found, :Kind

      # @param options [Options]
      def initialize(options)
        @options = options
        @params = options.params
        @found = []
        @known = {}
        @walked = {}.compare_by_identity
        @kinds = {}.compare_by_identity
        @merged = {}
      end

      # @return [Array<Hash>] resource objects
      def of(serializer, records)
        records.each { |record| walk(serializer, record, @options.tree) }
        @found.map { |found| writer(found.kind).call(found.record) }
      end

      private

      def walk(serializer, record, tree)
        relationships = serializer.relationships_to_serialize or return
        tree.each do |name, below|
          relationship = relationships[name]
          next unless relationship&.include_relationship?(record, @params)

          relationship.related(record, @params).each { |related| visit(kind(relationship, related, below), related) }
        end
      end

      def visit(kind, record)
        id = kind.serializer.id_from_record(record, @params).to_s
        return if kind.walked[id]

        kind.walked[id] = true
        walk(kind.serializer, record, kind.tree) unless kind.names.empty?
        found = kind.known[id]
        return merge(found, kind.names) if found

        @found << (kind.known[id] = Found.new(kind, record))
      end

      # The serializer of a relationship is the same for all its records, or is asked for with each.
      def kind(relationship, record, tree)
        serializer = relationship.serializer_for(record, @params)
        kinds = (@kinds[tree] ||= {}.compare_by_identity)
        known = kinds[relationship]
        return known if known && known.serializer.equal?(serializer)

        kinds[relationship] = new_kind(serializer, relationship.static_record_type || serializer.record_type, tree)
      end

      def new_kind(serializer, type, tree)
        walked = ((@walked[tree] ||= {})[type] ||= {})
        Kind.new(serializer, type, tree, tree.keys, walked, @known[type] ||= {})
      end

      # Its linkage is that of all the paths.
      def merge(found, names)
        kind = found.kind
        names = kind.names | names
        return if names == kind.names

        found.kind = (@merged[[kind.serializer, kind.type, names]] ||= Kind.new(kind.serializer, kind.type, nil, names))
      end

      def writer(kind)
        kind.writer ||= ResourceObject.new(kind.serializer, @options.fieldset(kind.type), @params, kind.names)
      end
    end
  end
end
