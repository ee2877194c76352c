# frozen_string_literal: true

require "erb"

module Castellan
  class Resource
    # Represents a value that is computed for each row: a link, a meta object or a condition. Frozen.
    #
    #   Computed.of("/users/{id}/roles")                              # reads the column id
    #   Computed.of(->(row, viewer) { … }, columns: %i[id])           # reads the listed columns
    #   Computed.of(->(record, viewer) { … })                         # needs the record: columns is nil
    #   Computed.of({ version: 1 })                                   # the same for each row
    #
    # `code` is true for a block of the application, false for a template or a constant. `pure` declares that
    # the block and the columns' readers and types are pure; nil means that the resource's `pure` applies.
    Computed = Struct.new(:block, :columns, :location, :pure, :code) do
      def self.of(value, columns: nil, location: nil, pure: nil)
        case value
        when Computed then value
        when String then text(value, location, pure)
        else
          block = block_of(value) or return new(->(_row) { value }, [].freeze, location, pure, false)
          new(block, columns && Array(columns).map(&:to_sym).freeze, location, pure, true)
        end
      end

      # @param value [Proc, Method, #call, Object]
      # @return [Proc, nil] the value as a block; nil if it cannot be called
      def self.block_of(value)
        return value if value.is_a?(Proc)

        (value.is_a?(Method) ? value : value.method(:call)).to_proc if value.respond_to?(:call)
      end

      # Columns are in braces, like in a URI template; their values are escaped.
      def self.text(template, location, pure)
        parts = template.split(/\{(\w+)\}/, -1).each_slice(2).map { |text, column| [text, column&.to_sym] }
        block = ->(row) { parts.each_with_object(+"") { |(text, column), url| url << text << (column ? escaped(row[column]) : "") } }
        new(block, parts.filter_map(&:last).uniq.freeze, location, pure, false)
      end

      def self.escaped(value) = value.is_a?(Integer) ? value.to_s : ERB::Util.url_encode(value.to_s)
      private_class_method :text, :escaped

      def initialize(*)
        super
        freeze
      end
    end
  end
end
