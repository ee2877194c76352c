# frozen_string_literal: true

module Castellan
  module Rows
    # Reads the ids that a client sent as values of an integer column. Drops others: the database would refuse
    # them, and `to_i` would keep their leading digits.
    #
    #   Ids.integers(["7", "7abc", 8, "99999999999999999999"])   # => [7, 8]
    module Ids
      LARGEST = (2**63) - 1
      UUID = /\A\h{8}-\h{4}-\h{4}-\h{4}-\h{12}\z/
      LARGEST_OF = { "bigint" => LARGEST, "integer" => (2**31) - 1, "smallint" => (2**15) - 1 }.freeze
      private_constant :LARGEST, :UUID, :LARGEST_OF

      module_function

      # @param id [Object] an id that the client sent
      # @return [Object, nil] nil for a string that no database accepts: with an invalid encoding, or with NUL
      def text(id)
        id.is_a?(String) ? ClientText.utf8(id) : id
      end

      # @param ids [Array<String, Integer>]
      # @return [Array<Integer>]
      def integers(ids)
        ids.filter_map do |id|
          number = id.is_a?(Integer) ? id : (id.to_i if id.to_s.match?(/\A-?\d+\z/))
          number if number && number.abs <= LARGEST
        end
      end

      # @param ids [Array<Integer, String>]
      # @param type [String] a PostgreSQL type
      # @return [Boolean] whether the type certainly holds all of them as they are written
      def of_type?(ids, type)
        return ids.all? { |id| id.is_a?(String) && UUID.match?(id) } if type == "uuid"

        largest = LARGEST_OF[type]
        !largest.nil? && ids.all? { |id| id.is_a?(Integer) && id.abs <= largest }
      end
    end
  end
end
