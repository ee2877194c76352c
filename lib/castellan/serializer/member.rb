# frozen_string_literal: true

module Castellan
  module Serializer
    # An attribute or a link: its key, and the method or block that gives the value.
    #
    #   Member.new(key: :name, method: :full_name).serialize(user, {}, hash = {})
    #   hash   # => { name: "Ada Lovelace" }
    class Member
      # @return [Symbol] the member's name in the document
      # @return [Symbol, Proc] what is called on the record, or with it
      # @return [Proc, nil] whether the member is written
      # @return [Array<Symbol>, nil] a path of to-one associations with a column at its end
      # @return [Object] what the block walks: names of associations, or trees of them
      attr_reader :key, :method, :conditional_proc, :from, :preloads

      def initialize(key:, method:, options: {})
        @key = key
        @conditional_proc = options[:if]
        @from = path(options[:from])
        @preloads = Preloading.list(options[:preloads])
        @method = @from ? ->(record) { walk(record) } : method
        @reader = conditional_proc || @method.is_a?(Proc) ? nil : @method
      end

      # Writes the member into the hash, unless its condition says no.
      def serialize(record, params, hash)
        return hash[key] = record.public_send(@reader) if @reader
        return unless conditionally_allowed?(record, params)

        hash[key] = method.is_a?(Proc) ? Serializer.call_proc(method, record, params) : record.public_send(method)
      end

      # @return [Boolean]
      def conditionally_allowed?(record, params)
        !conditional_proc || Serializer.call_proc(conditional_proc, record, params)
      end

      # @return [Boolean] whether its value depends on what is given as `params`
      def params?
        [method, conditional_proc].any? { |block| block.is_a?(Proc) && !from && block.arity >= 0 && block.parameters.size > 1 }
      end

      private

      def path(from)
        return unless from

        from.is_a?(Hash) ? flatten(from) : from.to_s.split(".").map(&:to_sym)
      end

      def flatten(from)
        from.flat_map { |key, rest| [key.to_sym, *(rest.is_a?(Hash) ? flatten(rest) : rest.to_sym)] }
      end

      def walk(record)
        from.reduce(record) { |object, name| object&.public_send(name) }
      end
    end
  end
end
