# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # The classes whose records stand in a model's table besides its own (single table inheritance). They grow as classes are loaded.
      #
      #   Subclasses.of(Vehicle)   # => [Car, Bike]
      #   Subclasses.of(User)      # => [], without a column for the type
      module Subclasses
        NONE = [].freeze
        private_constant :NONE

        module_function

        # @return [Array<Class>]
        def of(model)
          several?(model) ? model.descendants : NONE
        end

        # @return [Boolean]
        def several?(model)
          model.columns_hash.key?(model.inheritance_column.to_s)
        end
      end
    end
  end
end
