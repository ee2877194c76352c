# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Lists the loaded subclasses that share a model's table (single table inheritance).
      #
      #   Subclasses.of(Vehicle)   # => [Car, Bike]
      #   Subclasses.of(User)      # => [], because its table has no inheritance column
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
