# frozen_string_literal: true

module Castellan
  class Resource
    # Represents a declared attribute and the source of its value. Frozen.
    #
    # | `source`    | declared as                                             | read as                     |
    # |-------------|---------------------------------------------------------|-----------------------------|
    # | `:column`   | `attribute :email`                                      | a column of the row         |
    # | `:path`     | `attribute :employee_id, from: "employee.id"`           | the end of a to-one path    |
    # | `:computed` | `attribute(:name, columns: %i[first last]) { |row| … }` | a block over columns        |
    # | `:record`   | `attribute(:label) { |record| … }`                      | a block over loaded records |
    # | `:viewer`   | `per_viewer(:read_before) { |ids, viewer| … }`          | a placeholder               |
    #
    # `path`: the associations (empty for own columns). `columns`: the columns at its end (nil if the block
    # takes the record). `preloads`: the associations that such a block uses. `pure`: the block or reader
    # depends on its columns only. `as_stored`: ignore the model's methods and callbacks. `version`: returns a
    # value that changes with a viewer's values.
    Attribute = Struct.new(:name, :key, :source, :path, :columns, :block, :preloads, :condition, :pure, :as_stored, :version, :location,
                           keyword_init: true) do
      def initialize(**)
        super
        freeze
      end

      # @return [Symbol, nil] the column of the row that the attribute writes as it is, perhaps under another name
      #   (`from: "views_count"`); nil if it is no column of the own table
      def own_column
        columns.first if source == :column || (source == :path && path.empty?)
      end

      # @return [Array<Symbol, Array<Symbol>>] the attribute's columns, in the form of {ColumnPath#key}
      def column_keys
        Array(columns).map { |column| path.empty? ? column : [*path, column] }
      end
    end
  end
end
