# frozen_string_literal: true

module Castellan
  module Serializer
    # Writes the document of a serializer instance, from records or with {RelationDocument}.
    #
    #   document = RecordDocument.new(serializer, User.active, options)
    #   document.collection   # => { data: [{ id: "1", type: :user, … }] }
    #   document.json         # => '{"data":[{"id":"1","type":"user",…}]}'
    #
    # A separate class, so that applications can define methods of these names in their serializers.
    class RecordDocument
      # @param serializer [Serializer] its class may override its public methods
      # @param options [DocumentOptions]
      def initialize(serializer, resource, options)
        @serializer = serializer
        @class = serializer.class
        @resource = resource
        @options = options
        @inside = Rows::Together.current && options.together != false
      end

      def collection? = @class.is_collection?(@resource, @options.is_collection)

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
        relation = relation_document or return json_of_records
        verification = Document.verification or return written(relation)
        verification.check_serialized(@class.record_type.to_s, -> { written(relation_document) }, -> { json_of_records })
      end

      def explain
        return "#{@class.record_type}: the records that were given, each read by its methods" unless relation?

        RelationDocument.new(@class, relation, @options).explain
      end

      private

      def objects(records)
        objects = RecordObjects.new(@class, @options)
        document = { data: yield(records.map { |record| objects.call(record) }) }
        document[:included] = objects.included(records) if @options.tree.any?
        document
      end

      def together = Rows::Together.render(@options.together) { yield Rows::Together.current }

      # Returns whether the resource is an unloaded relation or dataset that can be read as rows. An
      # association may have new records, which are not in the table; inside another document, it is
      # loaded for all sibling records at once.
      def relation?
        return false if @options.is_collection == false
        return @resource.respond_to?(:model) if defined?(::Sequel::Dataset) && @resource.is_a?(::Sequel::Dataset)
        return false unless defined?(::ActiveRecord::Relation) && @resource.is_a?(::ActiveRecord::Relation) && !@resource.loaded?

        association = association_of_resource
        association.nil? || (!@inside && association.owner.persisted? && association.target.empty?)
      end

      # Returns nil for a relation that is derived from an association (`posts.published`).
      def association_of_resource
        @resource.proxy_association if defined?(::ActiveRecord) && @resource.is_a?(::ActiveRecord::Associations::CollectionProxy)
      end

      def relation = association_of_resource ? @resource.scope : @resource

      # @return [RelationDocument, nil] nil for records, and if the class overrides a method that renders
      def relation_document
        overridden = %i[hash_for_collection to_hash].any? { |name| @serializer.method(name).owner != Serializer } || own_json?
        return if !relation? || overridden

        document = RelationDocument.new(@class, relation, @options)
        document unless document.refusal
      end

      def own_json? = @serializer.class.method_defined?(:as_json) && @serializer.method(:as_json).owner != Object

      # Renders from records if rows cannot write a value (a nil id, NaN).
      def written(document)
        @options.together.nil? ? document.to_json : together { document.to_json }
      rescue EncodingError, DeclarationError
        json_of_records
      end

      def json_of_records = together { JsonText.of(own_json? ? @serializer.as_json : @serializer.to_hash) }

      def records
        return @resource.to_enum(:each).to_a unless relation?

        loaded = relation.dup # so that the caller's relation stays unloaded
        loaded.respond_to?(:to_ary) ? loaded.to_a : loaded.all
      end
    end
  end
end
