# frozen_string_literal: true

require "bigdecimal"
require "date"
require "json"
require "time"

module Castellan
  module TestSupport
    # Returns the values of a record's readers as JSON, without rows or coders; the oracle of values.
    #
    #   values = ModelValues.new(viewer)
    #   values.id(ada, :id)             # => "1"
    #   values.attribute(ada, member)   # => "2024-03-01T12:00:00.000Z"
    class ModelValues
      # @param scopes [Rows::ViewerScopes] the records that the viewer may see
      def initialize(viewer, scopes = Rows::ViewerScopes.new(viewer))
        @viewer = viewer
        @scopes = scopes
      end

      # @param column [Symbol, Array<Symbol>]
      # @return [String]
      def id(record, column)
        return read(record, column).to_s unless column.is_a?(Array)

        Rows::Ids.joined(column.map { |name| read(record, name) })
      end

      # @param column [Symbol, Array<Symbol>]
      # @return [Object] the id as plain JSON
      def plain_id(record, column)
        column.is_a?(Array) ? id(record, column) : json(read(record, column))
      end

      # @param attribute [Resource::Attribute]
      # @param along [Array<Resource::Definition, nil>, nil] the scoped resource of each step of the path
      # @return [Object] a value, as JSON.parse returns it
      def attribute(record, attribute, along = nil)
        json(value(record, attribute, along || []))
      end

      # @return [Boolean] whether the viewer may see the record; sends a query for each record
      def visible?(record, definition)
        return true unless definition&.scope

        @scopes.visible_records(definition, Rows.for(definition.model), [record]).first ? true : false
      end

      # @param computed [Resource::Computed] a link, a meta object or a condition
      # @return [Object] a value, as JSON.parse returns it
      def computed(record, computed)
        json(call(computed.block, computed.columns ? named(record, computed.columns) : record))
      end

      # @param relationship [Resource::Relationship]
      # @return [Array<Object>] the related records, loaded lazily
      def related(record, relationship)
        relationship.block ? list(call(relationship.block, record)) : follow(record, relationship.association_name)
      end

      def ordered?(record, relationship)
        return true if relationship.block || !relationship.to_many?
        return record.association(relationship.association_name).scope.order_values.any? if active_record?(record)

        dataset = :"#{relationship.association_name}_dataset"
        !record.respond_to?(dataset) || !record.public_send(dataset).opts[:order].nil?
      end

      private

      def value(record, attribute, along)
        case attribute.source
        when :computed then call(attribute.block, named(record, attribute.columns))
        when :record then call(attribute.block, record)
        else
          owner = attribute.path.zip(along).reduce(record) do |walked, (name, definition)|
            found = walked && follow(walked, name).first
            found if found && visible?(found, definition)
          end
          owner && read(owner, attribute.columns.first)
        end
      end

      # When the ORMs load a record, they set its inverse association, which may differ from the record that a
      # query finds.
      def follow(record, name)
        fresh = !loaded?(record, name)
        list(read(record, name)).each { |found| forget(found) if fresh }
      end

      def list(found)
        found.respond_to?(:to_ary) ? found.to_ary : [found].compact
      end

      def loaded?(record, name)
        return record.association(name).loaded? if active_record?(record) && record.class.reflect_on_association(name)

        !sequel?(record) || record.associations.key?(name)
      end

      def forget(record)
        return record.associations.clear if sequel?(record) && !record.frozen?
        return unless active_record?(record)

        names = record.class.reflect_on_all_associations(:has_one).map(&:name)
        names.each { |name| record.association(name).reset if record.association_cached?(name) }
      end

      def read(record, name)
        return record.fetch(name) { record.fetch(name.to_s, nil) } if record.is_a?(Hash)

        record.public_send(name)
      end

      def named(record, names)
        names.empty? ? record : Struct.new(*names).new(*names.map { |name| read(record, name) })
      end

      def call(block, argument)
        takes = block.lambda? && block.parameters == [[:req], [:rest]] ? 1 : block.parameters.count { |kind, _| %i[req opt].include?(kind) }
        takes > 1 ? block.call(argument, @viewer) : block.call(argument)
      end

      def active_record?(record)
        defined?(::ActiveRecord::Base) && record.is_a?(::ActiveRecord::Base)
      end

      def sequel?(record)
        defined?(::Sequel::Model) && record.is_a?(::Sequel::Model)
      end

      def json(value)
        value = walked(value) { |inner| in_utc(inner) }
        return JSON.parse(::ActiveSupport::JSON.encode([value])).first if defined?(::ActiveSupport::JSON)

        JSON.parse(JSON.generate([walked(value) { |inner| plain(inner) }])).first
      end

      def walked(value, &block)
        case value
        when Hash then value.to_h { |key, inner| [key.to_s, walked(inner, &block)] }
        when Array then value.map { |inner| walked(inner, &block) }
        else yield(value)
        end
      end

      # If the zone of the machine is UTC, a local time is written as UTC, with "Z".
      def in_utc(value)
        value.instance_of?(Time) && value.zone == "UTC" ? value.getutc : value
      end

      def plain(value)
        case value
        when BigDecimal then value.to_s("F")
        when DateTime, Time then in_utc(value.to_time).xmlschema(3)
        when Date then value.iso8601
        else value
        end
      end
    end
  end
end
