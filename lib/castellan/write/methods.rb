# frozen_string_literal: true

module Castellan
  module Write
    # Defines the methods of a resource that write one record. Override them and call `super`:
    #
    #   class PostResource < Castellan::Resource
    #     writable :title, :body
    #
    #     def create(attributes, viewer)
    #       super(attributes.merge(author: viewer), viewer)
    #     end
    #   end
    #
    # They run inside the transaction of the request. An exception rolls everything back.
    module Methods
      # @param attributes [Hash{Symbol => Object}] the model's attributes and associations
      # @param _viewer [Object, nil]
      # @return [Object] the stored record
      # @raise [NotSaved] if the record is invalid
      def create(attributes, _viewer)
        models = Models.for(self.class.definition.model)
        record = models.build
        models.assign(record, attributes)
        models.save(record) ? record : raise(NotSaved, record)
      end

      # @param record [Object] locked until the end of the transaction
      # @param attributes [Hash{Symbol => Object}] the model's attributes and associations that change
      # @param _viewer [Object, nil]
      # @return [Object] the record
      # @raise [NotSaved] if the record is invalid
      def update(record, attributes, _viewer)
        models = Models.for(self.class.definition.model)
        models.assign(record, attributes)
        models.save(record) ? record : raise(NotSaved, record)
      end

      # @param record [Object] locked until the end of the transaction
      # @param _viewer [Object, nil]
      # @raise [NotSaved] if a callback of the model aborts
      def delete(record, _viewer)
        Models.for(self.class.definition.model).delete(record) or raise NotSaved, record
      end
    end
  end
end
