# frozen_string_literal: true

module Castellan
  module Serializer
    # The included records of a document: each once, what it leads to before itself, with the linkage of all the paths that it was
    # reached by.
    #
    #   Included.new(options).of(UserSerializer, users)   # => [{ id: "1", type: :role, … }]
    #
    # First the records are gathered, then they are written: only then is it known of a record which of its lazy relationships
    # are included. A record that many lead to is walked once.
    class Included
      Found = Struct.new(:serializer, :type, :record, :included)
      private_constant :Found

      # @param options [Options]
      def initialize(options)
        @options = options
        @found = {}
        @walked = {}.compare_by_identity
        @objects = {}
      end

      # @return [Array<Hash>] resource objects
      def of(serializer, records)
        records.each { |record| walk(serializer, record, @options.tree) }
        @found.each_value.map { |found| objects(found).call(found.record) }
      end

      private

      def walk(serializer, record, tree)
        relationships = serializer.relationships_to_serialize || {}
        tree.each do |name, below|
          relationship = relationships[name]
          next unless relationship&.include_relationship?(record, @options.params)

          relationship.related(record, @options.params).each { |related| visit(relationship, related, below) }
        end
      end

      def visit(relationship, record, below)
        serializer = relationship.serializer_for(record, @options.params)
        type = relationship.static_record_type || serializer.record_type
        identity = [type, serializer.id_from_record(record, @options.params).to_s]
        walked = (@walked[below] ||= {})
        return if walked[identity]

        walked[identity] = true
        walk(serializer, record, below)
        found = (@found[identity] ||= Found.new(serializer, type, record, []))
        found.included |= below.keys
      end

      def objects(found)
        @objects[[found.serializer, found.type, found.included]] ||=
          ResourceObject.new(found.serializer, @options.fieldset(found.type), @options.params, found.included)
      end
    end
  end
end
