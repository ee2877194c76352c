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
      # Preloading compares their texts: "08" is no 8 to it, where a lazy load finds 8. So do links that are read as rows; where the
      # database takes two texts for one (blanks at the end, capitals), only the database can say what belongs together.
      class KeyTypes
        FAMILIES = { string: :text }.freeze
        PADDED = /\A(?:character|bpchar)(?:\(|\z)/ # PostgreSQL's char(n): with blanks up to n, which count for nothing
        EXACT = [nil, "BINARY", "C", "POSIX"].freeze
        ONE_TEXT = %i[integer uuid].freeze
        NUMBER_BYTES = 4
        private_constant :FAMILIES, :PADDED, :EXACT, :ONE_TEXT, :NUMBER_BYTES

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
          @families = [own, other].compact.map { |column| family(column) }
        end

        # @return [Boolean]
        def mixed?
          @families.uniq.size == 2 || several_texts?
        end

        # @return [Boolean] whether preloading finds what a lazy load finds
        def preloaded?
          !mixed? || (!several_texts? && ONE_TEXT.include?(@families.first) && @families.last == :text)
        end

        # @return [Boolean] whether ActiveRecord takes {OwnerKey}'s number for one that no row can have
        def narrow?
          @other&.type == :integer && !@other.limit.nil? && @other.limit < NUMBER_BYTES
        end

        private

        def family(column)
          PADDED.match?(column.sql_type) ? column.sql_type : FAMILIES.fetch(column.type, column.type || column.sql_type)
        end

        # Whether "a" and "A" may be one key.
        def several_texts?
          [@own, @other].compact.any? { |column| column.type == :citext || !EXACT.include?(column.collation&.upcase) }
        end
      end
    end
  end
end
