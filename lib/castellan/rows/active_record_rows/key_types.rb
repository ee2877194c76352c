# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # The two columns that an association compares, by their types.
      #
      #   types = KeyTypes.of(rows, Master, Master.reflect_on_association(:seals))   # masters.id and seals.of_id
      #   types.mixed?       # => true: integer and text
      #   types.preloaded?   # => true: of an integer there is one text
      #
      # ActiveRecord casts the owner's key to the type of the other column; a database may refuse to compare them, or find nothing.
      # Preloading compares their texts: "08" is no 8 to it, where a lazy load finds 8. So do links that are read as rows; where the
      # database takes two texts for one (blanks at the end, capitals), only the database can say what belongs together.
      class KeyTypes
        FAMILIES = { string: :text }.freeze
        PADDED = /\A(?:character|bpchar)(?:\(|\z)/ # PostgreSQL's char(n): with blanks up to n, which count for nothing
        ONE_TEXT = %i[integer uuid].freeze
        NUMBER_BYTES = 4
        private_constant :FAMILIES, :PADDED, :ONE_TEXT, :NUMBER_BYTES

        # @param adapter [ActiveRecordRows] of the database that compares them
        # @param owner [Class] the model that the keys come from
        # @param link [ActiveRecord::Reflection::AbstractReflection] to the table that they are compared in
        # @param related [Class]
        # @return [KeyTypes]
        def self.of(adapter, owner, link, related = link.klass)
          new(adapter, owner.columns_hash[link.join_foreign_key.to_s], related.columns_hash[link.join_primary_key(related).to_s])
        end

        def initialize(adapter, own, other)
          @adapter = adapter
          @own = own
          @other = other
          @families = [own, other].compact.map { |column| family(column) }
        end

        # @return [Boolean] whether equal texts are not all that belongs together, or the database refuses to compare the columns
        def mixed?
          @families.uniq.size == 2 || several_texts? || collations.size == 2
        end

        # @return [Boolean] whether the database compares the columns as it compares one of them with the other's value
        def equated?
          return false unless @own && @other && @own.collation == @other.collation

          !cast.nil? || (several_texts? && @own.sql_type == @other.sql_type)
        end

        # @return [String, nil] what the owner's column has to be made for that: beside char(n), blanks at the end count for nothing
        def cast
          "bpchar" if @families.first == :text && PADDED.match?(@other&.sql_type.to_s) && !several_texts?
        end

        # A value of the owner's is compared as the other column compares.
        # @return [Boolean] whether preloading finds what a lazy load finds
        def preloaded?
          return true if !mixed? || (text?(@own) && text?(@other) && one_text?(@other))

          !several_texts? && ONE_TEXT.include?(@families.first) && @families.last == :text
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
          ![@own, @other].compact.all? { |column| one_text?(column) }
        end

        def one_text?(column)
          column.type != :citext && (column.collation.nil? || @adapter.exact_collation?(column.collation))
        end

        def text?(column)
          column && (family(column) == :text || (column == @own && (column.type == :citext || PADDED.match?(column.sql_type))))
        end

        # PostgreSQL does not know by which of two to compare.
        def collations
          [@own, @other].compact.filter_map(&:collation).uniq
        end
      end
    end
  end
end
