# frozen_string_literal: true

module Castellan
  module Write
    # Finds the records of resource linkage. To a viewer, a hidden record does not exist.
    #
    #   linkage = LinkedRecords.new(scopes, local)
    #   linkage.records(relationship, [{ "type" => "tags", "id" => "1" }], "/data", mistakes)   # => [#<Tag id: 1>]
    class LinkedRecords
      # The maximum number of identifiers in one relationship.
      MOST = 1_000

      # @param scopes [Rows::ViewerScopes]
      # @param local [Hash{Array(String, String) => String}] ids of records created earlier in the request, by type
      #   and lid. Records are read again, because other operations may have changed them
      def initialize(scopes, local = {})
        @scopes = scopes
        @local = local
      end

      # @param relationship [Resource::Relationship]
      # @param data [Hash, Array, nil] parsed linkage
      # @param pointer [String] the JSON pointer to the linkage
      # @param mistakes [Array<BadRequest>] receives the errors
      # @param removed [Boolean] whether they leave the relationship; then an id that does not exist is no error
      # @return [Array<Object>, Object, nil] the records in the order of the linkage; for a to-one
      #   relationship a record or nil. Do not use the result if there are errors
      def records(relationship, data, pointer, mistakes, removed: false)
        before = mistakes.size
        identifiers = identifiers_of(relationship, data, pointer, mistakes)
        return unless mistakes.size == before

        found = find(relationship, identifiers, mistakes, removed)
        relationship.to_many? ? found.compact.uniq : found.first
      end

      # @param records [Array<Object>] of the relationship
      # @return [Array<Object>] the records that the viewer may not see, or that documents leave out
      def hidden(relationship, records)
        kinds = records.map { |record| Rows::RecordReader::Links.kind_of(relationship, record) } if relationship.leaves_out?
        left_out = kinds ? records.select.with_index { |_, index| kinds[index].nil? } : []
        left_out + relationship.definitions.each_with_index.flat_map do |definition, kind|
          own = records.select.with_index { |record, index| kinds ? kinds[index] == kind : of?(definition, record) }
          next [] if own.empty? || definition.scope.nil?

          ids = own.map { |record| Write.id_of(definition, record) }
          seen = visible(definition, definition.resource.checked_rows, ids).map { |record| Write.id_of(definition, record) }
          own.reject.with_index { |_, index| seen.include?(ids[index]) }
        end
      end

      private

      def of?(definition, record) = !definition.model.is_a?(Class) || record.is_a?(definition.model)

      def identifiers_of(relationship, data, pointer, mistakes)
        if relationship.to_many?
          return refuse(mistakes, pointer, "must be an array of resource identifiers, got #{Write.kind_of(data)}") unless data.is_a?(Array)
          return refuse(mistakes, pointer, "names more than #{MOST} resources") if data.size > MOST

          data.each_with_index.map { |one, index| identifier(relationship, one, "#{pointer}/#{index}", mistakes) }
        elsif data.is_a?(Array)
          refuse(mistakes, pointer, "must be a resource identifier or null, got an array")
        else
          data.nil? ? [] : [identifier(relationship, data, pointer, mistakes)]
        end
      end

      # @return [Array(Resource::Definition, String, Symbol, String, String)] definition, id (nil if unknown), "id" or
      #   "lid", what the client wrote, pointer
      def identifier(relationship, data, pointer, mistakes)
        return refuse(mistakes, pointer, "must be a resource identifier, got #{Write.kind_of(data)}") unless data.is_a?(Hash)

        key = %w[id lid].find { |name| data.key?(name) }
        return refuse(mistakes, pointer, "needs a type and an id") unless key && data.key?("type")

        other = ["type", key].find { |name| !data[name].is_a?(String) }
        return refuse(mistakes, "#{pointer}/#{other}", "must be a string, got #{Write.kind_of(data[other])}") if other
        return refuse(mistakes, "#{pointer}/#{key}", "must not contain the character NUL") if data[key].include?("\0")

        definition = relationship.definitions.find { |one| one.type == data["type"] }
        return [definition, key == "id" ? data[key] : @local[[definition.type, data[key]]], key, data[key], pointer] if definition

        types = relationship.definitions.map(&:type).join(" or ")
        refuse(mistakes, "#{pointer}/type", "must be #{types}, got #{ClientText.shown(data["type"]).inspect}", status: 422)
      end

      def find(relationship, identifiers, mistakes, removed)
        stored = identifiers.group_by(&:first)
        stored = stored.to_h { |definition, all| [definition, by_id(definition, all.filter_map { |one| one[1] })] }
        identifiers.map do |definition, id, key, given, pointer|
          record = stored[definition][id]
          record = nil if record && !of_type?(relationship, definition, record)
          record || (missing(mistakes, definition, given, key, pointer) unless removed && key == "id")
        end
      end

      # The model of a type may return the row of another type, if the other model is a subclass.
      def of_type?(relationship, definition, record)
        !relationship.leaves_out? || relationship.definitions.index(definition) == Rows::RecordReader::Links.kind_of(relationship, record)
      end

      def by_id(definition, ids)
        adapter = definition.resource.checked_rows
        records = ids.one? && unscoped_key?(definition,
                                            adapter) ? by_key(definition, adapter, ids.first) : visible(definition, adapter, ids)
        records.to_h { |record| [Write.id_of(definition, record), record] }
      end

      def visible(definition, adapter, ids)
        adapter.scopes.load(adapter.scopes.by_ids(@scopes.narrow(definition, adapter), ids, definition.id_column), whole: true)
      end

      # Both ORMs cache a prepared statement for finding a record by its primary key.
      def unscoped_key?(definition, adapter)
        definition.scope.nil? && definition.model.is_a?(Class) && definition.id_column == adapter.primary_key
      end

      def by_key(definition, adapter, id)
        key = adapter.types.typecast(definition.id_column, id)
        key.nil? ? [] : [Models.for(definition.model).find(key)].compact
      end

      def missing(mistakes, definition, id, key, pointer)
        refuse(mistakes, pointer, "there is no #{definition.type} with the #{key} #{ClientText.shown(id, 100).inspect}", status: 404)
      end

      def refuse(mistakes, pointer, detail, status: 400)
        mistakes << BadRequest.new(detail, pointer: pointer, status: status, title: status == 404 ? "Not found" : "Invalid linkage")
        nil
      end
    end

    # @return [String] the id in documents
    def self.id_of(definition, record)
      key_of(definition, record).join("_")
    end

    # @return [Array<Object>] the values of the id's columns
    def self.key_of(definition, record)
      [*definition.id_column].map do |column|
        value = record.public_send(column)
        column == :id && value.is_a?(Array) ? record.id_value : value # ActiveRecord's `id` of a composite key is the whole key
      end
    end
  end
end
