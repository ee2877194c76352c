# frozen_string_literal: true

module Castellan
  class Resource
    # Represents a column that clients may filter or sort by, perhaps at the end of a to-one path. Frozen.
    #
    #   sort :last_name                        # path [], column :last_name
    #   filter :company, from: "company.name"  # path [:company], column :name
    #
    # `reveals` is true if the declaration allows the column although an `if:` hides it in some rows.
    ColumnPath = Struct.new(:name, :path, :column, :location, :reveals) do
      def initialize(*)
        super
        path.freeze
        freeze
      end

      # @return [Boolean] whether the column is in the resource's own table
      def own?
        path.empty?
      end

      # @return [Symbol, Array<Symbol>] the column, or the path to it
      def key
        own? ? column : [*path, column]
      end
    end
  end
end
