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
      # @return [Boolean] whether the column is written as it is in the table, whatever the model's reader and callbacks make of it
      attr_reader :key, :method, :conditional_proc, :from, :preloads, :column, :as_stored

      def initialize(key:, method:, options: {})
        @key = key
        @conditional_proc = options[:if]
        @from = path(options[:from])
        @preloads = Preloading.list(options[:preloads])
        @as_stored = options[:as_stored] ? true : false
        @column = method unless @from || method.is_a?(Proc)
        block!(method) if as_stored
        @method = @from || as_stored ? ->(record) { walk(record) } : method
        @reader = conditional_proc || @method.is_a?(Proc) ? nil : @method
      end

      # Writes the member into the hash, unless its condition says no.
      def serialize(record, params, hash)
        return hash[key] = record.public_send(@reader) if @reader
        return unless conditionally_allowed?(record, params)

        hash[key] = value(record, params)
      end

      # @return [Object] whatever the condition says
      def value(record, params)
        method.is_a?(Proc) ? Serializer.call_proc(method, record, params) : record.public_send(method)
      end

      # @return [Boolean]
      def conditionally_allowed?(record, params)
        !conditional_proc || Serializer.call_proc(conditional_proc, record, params)
      end

      # @return [Boolean] whether its value depends on what is given as `params`
      def params?
        blocks = [(method unless from || as_stored), conditional_proc].grep(Proc)
        blocks.any? { |block| block.arity >= 0 && block.parameters.size > 1 }
      end

      private

      def block!(method)
        return unless method.is_a?(Proc)

        raise ConfigurationError, "attribute #{key.inspect}: as_stored: writes a column as it is; leave out the block"
      end

      def path(from)
        return unless from

        from.is_a?(Hash) ? flatten(from) : from.to_s.split(".").map(&:to_sym)
      end

      def flatten(from)
        from.flat_map { |key, rest| [key.to_sym, *(rest.is_a?(Hash) ? flatten(rest) : rest.to_sym)] }
      end

      def walk(record)
        *path, name = *(from || column)
        owner = path.reduce(record) { |object, association| object&.public_send(association) }
        return owner&.public_send(name) unless as_stored

        Rows::ObjectRows::Instances.new.stored([owner], name).first if owner
      end
    end
  end
end
