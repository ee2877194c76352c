# frozen_string_literal: true

module Castellan
  class Resource
    # One declared relationship: its name, its cardinality and the resource at its other end. Frozen.
    #
    # The resource is named by a string until it is asked for, because two resources may name each other.
    class Relationship
      # @return [Symbol] the association's name, as declared
      # @return [String] the member's name in the document
      # @return [Symbol] :has_many, :has_one or :belongs_to
      # @return [Proc, nil] returns the related records of a record, where no association does
      # @return [String] "path:line" of the declaration
      attr_reader :name, :key, :macro, :block, :location

      def initialize(name:, key:, macro:, owner:, resource:, location:, block: nil)
        @name = name
        @key = key
        @macro = macro
        @owner = owner
        @resource = resource
        @block = block
        @location = location
        @found = {}
        freeze
      end

      # @return [Boolean]
      def to_many?
        macro == :has_many
      end

      # @return [Class] the resource at the other end, looked up once
      # @raise [DeclarationError] naming the nearest resource when there is none
      def resource
        @found[:resource] ||= find
      end

      # @return [Definition]
      def definition
        resource.definition
      end

      private

      def find
        case @resource
        when Class then @resource
        when Proc then @resource.call
        else ResourceName.new(@resource || "#{ResourceName.classify(name)}Resource", owner: @owner, location: location).resolve
        end
      end
    end
  end
end
