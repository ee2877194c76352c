# frozen_string_literal: true

module Castellan
  module Serializer
    # Writes what one instance of a serializer was given. A separate object, so that no method of an application's serializer
    # (`records`, `source`, `document`) replaces one of these.
    #
    #   writing = Writing.new(serializer, User.active, options)
    #   writing.collection   # => { data: [{ id: "1", type: :user, … }] }
    #   writing.json         # => '{"data":[{"id":"1","type":"user",…}]}'
    class Writing
      # @param serializer [Serializer] whose public methods its class may override
      # @param options [Options]
      def initialize(serializer, resource, options)
        @serializer = serializer
        @class = serializer.class
        @resource = resource
        @options = options
        @inside = Rows::Together.current && options.together != false
      end

      # @return [Boolean]
      def collection?
        @class.is_collection?(@resource, @options.is_collection)
      end

      # @return [Hash]
      def one_record
        return { data: nil, **@options.around } unless @resource

        together { { data: nil, **@options.around, **objects([@resource]) { |list| list.first } } }
      end

      # @return [Hash]
      def collection
        together do |siblings|
          records = self.records
          siblings&.add(records)
          { **objects(records) { |list| list }, **@options.around }
        end
      end

      # @return [String]
      def json
        document = self.document or return together { JsonText.of(hash_for_json) }
        verification = Document.verification or return written(document)
        verification.check_serialized(@class.record_type.to_s, -> { written(self.document) }, -> { JsonText.of(@serializer.to_hash) })
      end

      # @return [String]
      def explain
        return "#{@class.record_type}: the records that were given, each asked for what is written" unless relation?

        RelationDocument.new(@class, relation, @options).explain
      end

      private

      def objects(records)
        objects = ResourceObject.new(@class, @options)
        document = { data: yield(records.map { |record| objects.call(record) }) }
        document[:included] = objects.included(records) if @options.tree.any?
        document
      end

      def together
        Rows::Together.render(@options.together) { yield Rows::Together.current }
      end

      # Whether an unread relation or dataset was given. Records that were built in an association are in no table; inside of
      # another document, an association is loaded with those of its record's siblings.
      def relation?
        return false if @options.is_collection == false
        return @resource.respond_to?(:model) if defined?(::Sequel::Dataset) && @resource.is_a?(::Sequel::Dataset)
        return false unless defined?(::ActiveRecord::Relation) && @resource.is_a?(::ActiveRecord::Relation) && !@resource.loaded?

        !association? || (!@inside && @resource.proxy_association.owner.persisted? && @resource.proxy_association.target.empty?)
      end

      # A relation that was made from an association (`posts.published`) is none.
      def association?
        @resource.is_a?(::ActiveRecord::Associations::CollectionProxy)
      end

      def relation
        @resource.respond_to?(:proxy_association) && association? ? @resource.scope : @resource
      end

      # Whether the class overrides none of the methods that write a document.
      def generic?
        %i[hash_for_collection to_hash].all? { |name| @serializer.method(name).owner.equal?(Serializer) } && !own_json?
      end

      def own_json?
        @serializer.respond_to?(:as_json) && !@serializer.method(:as_json).owner.equal?(Object)
      end

      def hash_for_json
        own_json? ? @serializer.as_json : @serializer.to_hash
      end

      # @return [RelationDocument, nil]
      def document
        return unless relation? && generic?

        document = RelationDocument.new(@class, relation, @options)
        document unless document.refusal
      end

      # A value that rows cannot write (an id that is nil, NaN) is written from records.
      def written(document)
        @options.together.nil? ? document.to_json : together { document.to_json }
      rescue EncodingError, DeclarationError
        together { JsonText.of(hash_for_json) }
      end

      def records
        return @resource.to_enum(:each).to_a unless relation?

        loaded = relation.dup # the caller's relation stays unloaded
        loaded.respond_to?(:to_ary) ? loaded.to_a : loaded.all
      end
    end
  end
end
