# frozen_string_literal: true

require "erb"

module Castellan
  class Resource
    # A value that is computed for each row: a link, a meta object or a condition. Frozen.
    #
    #   Computed.of("/users/{id}/roles")                              # reads the column id
    #   Computed.of(->(row, viewer) { … }, columns: %i[id])           # reads the named columns
    #   Computed.of(->(record, viewer) { … })                         # needs the model's instance: columns is nil
    #   Computed.of({ version: 1 })                                   # the same for each row
    #
    # `code` is nil for a text or a constant, :pure for a block that is declared `pure: true`, and :impure for any other block.
    Computed = Struct.new(:block, :columns, :location, :code) do
      def self.of(value, columns: nil, location: nil, pure: false)
        case value
        when Computed then value
        when String then text(value, location)
        else
          block = block_of(value) or return new(->(_row) { value }, [].freeze, location)
          new(block, columns && Array(columns).map(&:to_sym).freeze, location, pure ? :pure : :impure)
        end
      end

      # @param value [Proc, Method, #call, Object]
      # @return [Proc, nil] that does the same, nil of what cannot be called
      def self.block_of(value)
        return value if value.is_a?(Proc)

        (value.is_a?(Method) ? value : value.method(:call)).to_proc if value.respond_to?(:call)
      end

      # Columns are in braces, as in a URI template; their values are escaped.
      def self.text(template, location)
        columns = template.scan(/\{(\w+)\}/).flatten.map(&:to_sym)
        block = ->(row) { template.gsub(/\{(\w+)\}/) { ERB::Util.url_encode(row[Regexp.last_match(1)].to_s) } }
        new(block, columns.uniq.freeze, location)
      end
      private_class_method :text

      def initialize(*)
        super
        freeze
      end
    end
  end
end
