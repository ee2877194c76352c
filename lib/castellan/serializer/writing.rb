# frozen_string_literal: true

module Castellan
  module Serializer
    # How one instance of a serializer writes what it was given. An object of its own, so that no method which an application's
    # serializer has or comes to have (`records`, `source`, `document`) takes the place of one that is needed here.
    #
    #   writing = Writing.new(serializer, User.active, options)
    #   writing.collection   # => { data: [{ id: "1", type: :user, … }] }
    #   writing.json         # => '{"data":[{"id":"1","type":"user",…}]}'
    class Writing
      # @param serializer [Serializer] asked by its public methods, which its class may have written anew
      # @param options [Options]
      def initialize(serializer, resource, options)
        @serializer = serializer
        @class = serializer.class
        @resource = resource
        @options = options
      end

      # @return [Boolean]
      def collection?
        @class.is_collection?(@resource, @options.is_collection)
      end

      # @return [Hash]
      def one_record
        document = { data: nil, **around }
        return document unless @resource

        document[:data] = primary.call(@resource)
        document[:included] = included([@resource]) if @options.tree.any?
        document
      end

      # @return [Hash]
      def collection
        records = self.records
        document = { data: records.map { |record| primary.call(record) } }
        document[:included] = included(records) if @options.tree.any?
        document.merge!(around)
      end

      # @return [String]
      def json
        document = self.document or return JsonText.of(hash_for_json)
        verification = Document.verification or return written(document)
        verification.check_serialized(@class.record_type.to_s, -> { written(self.document) }, -> { JsonText.of(@serializer.to_hash) })
      end

      # @return [String]
      def explain
        Explanation.new(@class, source, @options).to_s
      end

      private

      # @return [Source, nil]
      def source
        Source.of(@resource) unless @options.is_collection == false
      end

      # What a class writes over them is what is written.
      def generic?
        %i[hash_for_collection to_hash].all? { |name| @serializer.method(name).owner.equal?(Serializer) } && !json_of_its_own?
      end

      def json_of_its_own?
        @serializer.respond_to?(:as_json) && !@serializer.method(:as_json).owner.equal?(Object)
      end

      # As ActiveSupport asks what is to be JSON.
      def hash_for_json
        json_of_its_own? ? @serializer.as_json : @serializer.to_hash
      end

      # @return [RelationDocument, nil] nil where the include leads through what only records know
      def document
        return unless (given = source) && generic?

        document = RelationDocument.new(@class, given, @options)
        document if document.rows?
      end

      # What rows have no word for (an id that is nil, a number that is none), and what they turn out not to know, is written of records.
      def written(document)
        document.to_json
      rescue EncodingError, DeclarationError
        JsonText.of(hash_for_json)
      end

      def records
        given = source
        return RelationDocument.records(@class, given, @options) if given

        AssociationTree.complete(@resource.to_enum(:each).to_a, @class, @options)
      end

      # What stands beside the data.
      def around
        around = {}
        around[:meta] = @options.meta unless Blank.blank?(@options.meta)
        around[:links] = @options.links unless Blank.blank?(@options.links)
        around
      end

      def primary
        @primary ||= ResourceObject.new(@class, @options.fieldset(@class.record_type), @options.params, @options.tree.keys)
      end

      def included(records)
        Included.new(@options).of(@class, records)
      end
    end
  end
end
