# frozen_string_literal: true

require "bigdecimal"
require "date"

module Castellan
  module Rows
    # How the values that Ruby already has are written: by a coder where all of a column are of one plain class, else one by one.
    #
    #   RubyValues.coder([1, nil, 2])        # => :integer
    #   RubyValues.coder([1, "two"])         # => nil
    #
    # Times are left to whoever knows how the application writes them.
    module RubyValues
      CODERS = { String => :text, Symbol => :text, Integer => :integer, TrueClass => :boolean, FalseClass => :boolean, Float => :float,
                 Date => :date }.freeze
      private_constant :CODERS

      module_function

      # @param values [Array<Object>]
      # @return [Symbol, nil] nil where JSON of each value has to be asked for
      def coder(values)
        kinds = values.uniq(&:class)
        kinds = kinds.map(&:class) - [NilClass]
        coders = kinds.map { |kind| CODERS[kind] }.uniq
        return :text if coders.empty?

        coders.first if coders.size == 1 && (coders.first != :date || iso_dates?)
      end

      # Rails may be told to write 2024/01/31.
      def iso_dates?
        !defined?(::ActiveSupport::JSON::Encoding) || ::ActiveSupport::JSON::Encoding.use_standard_json_time_format
      end
    end
  end
end
