# frozen_string_literal: true

module Castellan
  module Plan
    # Parses the value of a query parameter as a string or a list of strings.
    #
    #   Parameter.list("fields[users]", "email,last_name")   # => ["email", "last_name"]
    #   Parameter.shown("\xFFoo" * 100)   # => valid UTF-8, short enough for an error message
    #
    # Invalid UTF-8 and NUL raise {BadRequest}, because neither databases
    # nor JSON error documents accept them.
    module Parameter
      # Longer lists raise BadRequest.
      MOST = 1_000

      module_function

      # @param value [String, Symbol, Array, Object] a comma-separated
      #   string, or an Array that is already split
      # @param gaps [Boolean] whether an empty part after the last comma counts
      # @return [Array<String>]
      # @raise [BadRequest]
      def list(name, value, title: "Invalid query parameter", gaps: false)
        parts = case value
                when String then text(name, value, title: title).split(",", gaps ? -1 : 0)
                when Array then value
                when Hash, nil then refuse(name, "#{name} must be a list divided by commas", title: title)
                else [value.to_s]
                end
        refuse(name, "#{name} names more than #{MOST} values", title: title) if parts.size > MOST

        parts.equal?(value) ? parts.map { |part| scalar(name, part, title) } : parts
      end

      # @return [String]
      # @raise [BadRequest]
      def text(name, value, title: "Invalid query parameter")
        refuse(name, "#{name} must be text", title: title) unless value.is_a?(String)
        ClientText.utf8(value) or refuse(name, "#{name} is not valid UTF-8 text", title: title)
      end

      # @return [String] short valid UTF-8 for an error message
      def shown(text) = ClientText.shown(text)

      # @raise [BadRequest]
      def refuse(name, detail, title: "Invalid query parameter")
        raise BadRequest.new(detail, parameter: name, title: title)
      end

      def scalar(name, part, title)
        refuse(name, "#{name} must be a list divided by commas", title: title) if part.nil? || part.is_a?(Hash) || part.is_a?(Array)

        text(name, part.to_s, title: title)
      end
      private_class_method :scalar
    end
  end
end
