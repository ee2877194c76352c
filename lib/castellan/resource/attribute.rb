# frozen_string_literal: true

module Castellan
  class Resource
    # A declared attribute and the source of its value. Frozen.
    #
    # | `source`    | declared as                                             | read as                                    |
    # |-------------|---------------------------------------------------------|--------------------------------------------|
    # | `:column`   | `attribute :email`                                      | a column of the row                        |
    # | `:path`     | `attribute :employee_id, from: "employee.id"`           | a column through to-one associations       |
    # | `:computed` | `attribute(:name, columns: %i[first last]) { |row| … }` | a block of named columns                   |
    # | `:record`   | `attribute(:label) { |record| … }`                      | a block of the model's instance: one batch |
    # | `:viewer`   | `per_viewer(:read_before) { |ids, viewer| … }`          | a placeholder, filled for the viewer       |
    #
    # `path` are the associations to walk (empty for own columns), `columns` the columns at its end (nil for a block of the record),
    # `preloads` the associations that such a block walks. `pure` declares that its code (block or reader) reads nothing but its columns.
    # `as_stored` writes the column as it is in the table, whatever methods and callbacks the model has. `version` returns what the
    # values of a viewer depend on.
    Attribute = Struct.new(:name, :key, :source, :path, :columns, :block, :preloads, :condition, :pure, :as_stored, :version, :location,
                           keyword_init: true) do
      def initialize(**)
        super
        freeze
      end

      # @return [Array<Symbol, Array<Symbol>>] the columns that it is made of, as {ColumnPath#key} names them
      def column_keys
        Array(columns).map { |column| path.empty? ? column : [*path, column] }
      end
    end
  end
end
