# frozen_string_literal: true

module Castellan
  class Resource
    # One declared attribute, and where its value comes from. Frozen.
    #
    # | `source`    | declared as                                             | read as                                    |
    # |-------------|---------------------------------------------------------|--------------------------------------------|
    # | `:column`   | `attribute :email`                                      | a column of the row                        |
    # | `:path`     | `attribute :employee_id, from: "employee.id"`           | a column through to-one associations       |
    # | `:computed` | `attribute(:name, columns: %i[first last]) { |row| … }` | a block of named columns                   |
    # | `:record`   | `attribute(:label) { |record| … }`                      | a block of the model's instance: one batch |
    # | `:viewer`   | `per_viewer(:read_before) { |ids, viewer| … }`          | a hole in the bytes, filled for the viewer |
    #
    # `path` holds the associations to walk (empty for own columns), `columns` the columns at its end (nil for a block of the record),
    # `preloads` what the block of a record walks. `pure` declares that the Ruby code behind it (its block, the model's reader) reads its
    # columns and nothing else. `as_stored` writes the column as it is in the table, whatever methods and callbacks the model has.
    Attribute = Struct.new(:name, :key, :source, :path, :columns, :block, :preloads, :condition, :pure, :as_stored, :location,
                           keyword_init: true) do
      def initialize(**)
        super
        freeze
      end
    end
  end
end
