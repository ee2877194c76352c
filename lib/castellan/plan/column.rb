# frozen_string_literal: true

module Castellan
  module Plan
    # One column that a node reads: of its own table, or of the table at the end of a path of to-one associations. Frozen.
    #
    #   Column.new([], :email)          # users.email
    #   Column.new([:employee], :id)    # the id of the user's employee
    Column = Struct.new(:path, :name) do
      def initialize(*)
        super
        path.freeze
        freeze
      end

      # @return [Boolean] whether the column is in the node's own table
      def own?
        path.empty?
      end
    end
  end
end
