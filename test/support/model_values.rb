# frozen_string_literal: true

require "bigdecimal"
require "date"
require "json"
require "time"

module Castellan
  module TestSupport
    # What the public readers of a record say, as JSON has it. Knows nothing of rows, plans' columns or coders: it is their oracle.
    #
    #   values = ModelValues.new(viewer)
    #   values.id(ada, :id)             # => "1"
    #   values.attribute(ada, member)   # => "2024-03-01T12:00:00.000Z"
    class ModelValues
      # @param scopes [Rows::ViewerScopes] what the viewer may see
      def initialize(viewer, scopes = Rows::ViewerScopes.new(viewer))
        @viewer = viewer
        @scopes = scopes
      end

      # @param column [Symbol, Array<Symbol>]
      # @return [String]
      def id(record, column)
        return read(record, column).to_s unless column.is_a?(Array)

        Rows::RecordIds.joined(column.map { |name| read(record, name) })
      end

      # @param column [Symbol, Array<Symbol>]
      # @return [Object] as plain JSON has it
      def plain_id(record, column)
        column.is_a?(Array) ? id(record, column) : json(read(record, column))
      end

      # @param attribute [Resource::Attribute]
      # @param along [Array<Resource::Definition, nil>, nil] the scoped resource of each step of its path
      # @return [Object] what JSON.parse could have answered
      def attribute(record, attribute, along = nil)
        json(value(record, attribute, along || []))
      end

      # @return [Boolean] asked of each record by itself, as a model would be
      def visible?(record, definition)
        return true unless definition&.scope

        @scopes.visible_records(definition, Rows.for(definition.model), [record]).first ? true : false
      end

      # @param computed [Resource::Computed] a link, a meta object or a condition
      # @return [Object] what JSON.parse could have answered
      def computed(record, computed)
        json(call(computed.block, computed.columns ? named(record, computed.columns) : record))
      end

      # @param relationship [Resource::Relationship]
      # @return [Array<Object>] related records, loaded as one record loads them
      def related(record, relationship)
        relationship.block ? list(call(relationship.block, record)) : follow(record, relationship.association_name)
      end

      # @return [Boolean] whether the association says in which order its records come
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

      # Both ORMs tell a record that they load whose association led to it, which may not be what it would find by itself.
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

      # A machine's time that is UTC is written as UTC is.
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
