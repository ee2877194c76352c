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
        @inside = Rows::Together.current && options.together != false
      end

      # @return [Boolean]
      def collection?
        @class.is_collection?(@resource, @options.is_collection)
      end

      # @return [Hash]
      def one_record
        document = { data: nil, **around }
        return document unless @resource

        together do
          document[:data] = primary.call(@resource)
          document[:included] = included([@resource]) if @options.tree.any?
        end
        document
      end

      # @return [Hash]
      def collection
        together do |siblings|
          records = self.records
          siblings&.add(records)
          document = { data: records.map { |record| primary.call(record) } }
          document[:included] = included(records) if @options.tree.any?
          document.merge!(around)
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

      def together
        Rows::Together.render(@options.together) { yield Rows::Together.current }
      end

      # Inside of another document, an association is loaded with those of the siblings of its record.
      def shared?
        @inside && defined?(::ActiveRecord::Associations::CollectionProxy) && association?
      end

      # Whether a relation or dataset was given that has not been read; records that were built in an association are in no table.
      def relation?
        return false if @options.is_collection == false || shared?
        return @resource.respond_to?(:model) if defined?(::Sequel::Dataset) && @resource.is_a?(::Sequel::Dataset)
        return false unless defined?(::ActiveRecord::Relation) && @resource.is_a?(::ActiveRecord::Relation) && !@resource.loaded?

        !association? || (@resource.proxy_association.owner.persisted? && @resource.proxy_association.target.empty?)
      end

      # A relation that was made from an association (`posts.published`) is none.
      def association?
        @resource.is_a?(::ActiveRecord::Associations::CollectionProxy)
      end

      def relation
        @resource.respond_to?(:proxy_association) && association? ? @resource.scope : @resource
      end

      # Whether the class defines none of the methods that write a document: what it defines is written.
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

      # What rows cannot write (an id that is nil, a number that is none) is written from records.
      def written(document)
        @options.together.nil? ? document.to_json : together { document.to_json }
      rescue EncodingError, DeclarationError
        together { JsonText.of(hash_for_json) }
      end

      def records
        return Preloading.new(@options).call(@class, @resource.to_enum(:each).to_a) unless relation?

        loaded = relation.dup # the caller's own stays unread
        Preloading.new(@options).call(@class, loaded.respond_to?(:to_ary) ? loaded.to_a : loaded.all)
      end

      def around
        { meta: @options.meta, links: @options.links }.reject { |_, value| Serializer.blank?(value) }
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
