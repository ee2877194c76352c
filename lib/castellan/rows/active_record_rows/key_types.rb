# frozen_string_literal: true

module Castellan
  module Rows
    class ActiveRecordRows
      # Compares the types of the two columns of an association's join.
      #
      #   types = KeyTypes.of(rows, Master, Master.reflect_on_association(:seals))   # masters.id and seals.of_id
      #   types.mixed?       # => true: integer and text
      #   types.preloaded?   # => true: an integer has only one text form
      #
      # ActiveRecord casts the owner's key to the other column's type, and a database may refuse the
      # comparison. Preloading and rows compare strings: "08" does not match 8, while a lazy load finds 8. If
      # the database treats two strings as equal (trailing blanks, case), only the database can match them.
      class KeyTypes
        FAMILIES = { string: :text }.freeze
        PADDED = /\A(?:character|bpchar)(?:\(|\z)/ # PostgreSQL's char(n), padded with blanks that comparisons ignore
        ONE_TEXT = %i[integer uuid].freeze
        NUMBER_BYTES = 4
        private_constant :FAMILIES, :PADDED, :ONE_TEXT, :NUMBER_BYTES

        # @param adapter [ActiveRecordRows] the adapter of the database that compares the columns
        # @param owner [Class] the model of the keys
        # @param link [ActiveRecord::Reflection::AbstractReflection] leads to the table with the other column
        # @param related [Class] the model of that table
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

        # @return [Boolean] whether equal keys may be different strings, or cannot be compared
        def mixed?
          @families.uniq.size == 2 || several_texts? || collations.size == 2
        end

        # @return [Boolean] whether comparing the columns equals comparing one with a value
        def equated?
          return false unless @own && @other && @own.collation == @other.collation

          !cast.nil? || (several_texts? && @own.sql_type == @other.sql_type)
        end

        # @return [String, nil] the owner's cast: text is cast to bpchar if the other column is char(n)
        def cast
          "bpchar" if @families.first == :text && PADDED.match?(@other&.sql_type.to_s) && !several_texts?
        end

        # @return [Boolean] whether preloading finds what a lazy load finds
        def preloaded?
          return true if !mixed? || (text?(@own) && text?(@other) && one_text?(@other))

          !several_texts? && ONE_TEXT.include?(@families.first) && @families.last == :text
        end

        # @return [Boolean] whether {OwnerKey}'s number is out of range for the other column
        def narrow?
          @other&.type == :integer && !@other.limit.nil? && @other.limit < NUMBER_BYTES
        end

        private

        def family(column)
          PADDED.match?(column.sql_type) ? column.sql_type : FAMILIES.fetch(column.type, column.type || column.sql_type)
        end

        # Whether "a" and "A" may be the same key.
        def several_texts?
          ![@own, @other].compact.all? { |column| one_text?(column) }
        end

        def one_text?(column)
          column.type != :citext && (column.collation.nil? || @adapter.exact_collation?(column.collation))
        end

        def text?(column)
          column && (family(column) == :text || (column == @own && (column.type == :citext || PADDED.match?(column.sql_type))))
        end

        # PostgreSQL refuses to compare columns of two collations.
        def collations
          [@own, @other].compact.filter_map(&:collation).uniq
        end
      end
    end
  end
end
