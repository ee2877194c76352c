# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # The two columns that an association compares, by their types.
      #
      #   types = KeyTypes.of(Master, Master.reflect_on_association(:seals))   # masters.id and seals.of_id
      #   types.mixed?       # => true: integer and text
      #   types.preloaded?   # => true: of an integer there is one text
      #
      # ActiveRecord casts the owner's key to the type of the other column; a database may refuse to compare them, or find nothing.
      # Preloading compares their texts: "08" is no 8 to it, where a lazy load finds 8.
      class KeyTypes
        FAMILIES = { string: :text }.freeze
        ONE_TEXT = %i[integer uuid].freeze
        NUMBER_BYTES = 4
        private_constant :FAMILIES, :ONE_TEXT, :NUMBER_BYTES

        # @param owner [Class] the model that the keys come from
        # @param link [ActiveRecord::Reflection::AbstractReflection] to the table that they are compared in
        # @param related [Class]
        # @return [KeyTypes]
        def self.of(owner, link, related = link.klass)
          new(owner.columns_hash[link.join_foreign_key.to_s], related.columns_hash[link.join_primary_key(related).to_s])
        end

        def initialize(own, other)
          @own = own
          @other = other
          @families = [own, other].compact.map { |column| FAMILIES.fetch(column.type, column.type) }
        end

        # @return [Boolean]
        def mixed?
          @families.uniq.size == 2
        end

        # @return [Boolean] whether preloading finds what a lazy load finds
        def preloaded?
          !mixed? || (ONE_TEXT.include?(@families.first) && @families.last == :text)
        end

        # @return [Boolean] whether ActiveRecord takes {OwnerKey}'s number for one that no row can have
        def narrow?
          @other&.type == :integer && !@other.limit.nil? && @other.limit < NUMBER_BYTES
        end
      end
    end
  end
end
