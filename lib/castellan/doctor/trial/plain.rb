# frozen_string_literal: true

module Castellan
  module Doctor
    class Trial
      # Converts a block's result to comparable plain values: models to attributes, collections to arrays.
      #
      #   Plain.of([user, nil, { at: 1 }])   # => [{ "User" => { "id" => 1, … } }, nil, { "at" => 1 }]
      #
      # Other objects are compared by their to_h.
      module Plain
        AS_THEY_ARE = [NilClass, TrueClass, FalseClass, Numeric, String].freeze
        private_constant :AS_THEY_ARE

        module_function

        # @return [Object] hashes, arrays and values
        # @raise [Error] if a value cannot be compared
        def of(value)
          case value
          when *AS_THEY_ARE then value
          when Symbol then value.to_s
          when Time, Range, Module then value.inspect
          when Hash then value.to_h { |key, member| [of_key(key), of(member)] }
          else model(value) || collection(value)
          end
        end

        def of_key(key) = key.is_a?(String) || key.is_a?(Symbol) ? key.to_s : of(key).to_s
        private_class_method :of_key

        def model(value)
          models = Detect.models(value.class) or return
          { value.class.name.to_s => of(models == Detect::SequelModels ? value.values : value.attributes) }
        end
        private_class_method :model

        def collection(value)
          return value.to_a.map { |member| of(member) } if value.is_a?(Enumerable) && !value.is_a?(Struct)
          return value.to_ary.map { |member| of(member) } if value.respond_to?(:to_ary)
          return of(value.to_h) if value.respond_to?(:to_h)
          return value.iso8601 if value.respond_to?(:iso8601)

          raise Error, "the block returned a #{value.class}, which cannot be compared: let it return the response, its body, " \
                       "or plain values"
        end
        private_class_method :collection
      end
    end
  end
end
