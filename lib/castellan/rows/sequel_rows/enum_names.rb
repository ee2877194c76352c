# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # Returns the names of a column with Sequel's plugin enum, which has them only in the methods that it defines:
      # `active!` sets the column, and the reader returns the name.
      #
      #   EnumNames.of(Project, :state)   # => { "active" => 1, "planned" => 0 }
      module EnumNames
        # @param model [Class, nil]
        # @return [Hash{String => Object}, nil] the stored value for each name, by name, because Ruby lists methods in no
        #   order that lasts; nil if the reader returns the stored value
        def self.of(model, column)
          modules = model&.ancestors.to_a.grep(Class).filter_map { |one| one.instance_variable_get(:@enum_methods) }
          methods = modules.find { |one| one.method_defined?(column, false) } or return
          methods.instance_methods(false).grep(/!\z/).filter_map { |setter|
            record = model.allocate
            record.instance_variable_set(:@values, {})
            methods.instance_method(setter).bind_call(record)
            [methods.instance_method(column).bind_call(record).to_s, record[column]] if record.values.key?(column)
          }.sort_by(&:first).to_h
        end
      end
    end
  end
end
