# frozen_string_literal: true

module Castellan
  module Serializer
    # Represents an attribute or a link: its key, and the method or block that returns its value.
    #
    #   Member.new(key: :name, method: :full_name).serialize(user, {}, hash = {})
    #   hash   # => { name: "Ada Lovelace" }
    class Member
      # @return [Symbol] the member's name in the document
      # @return [Symbol, Proc] a method of the record, or a block that takes it
      # @return [Proc, nil] returns whether to write the member
      # @return [Array<Symbol>, nil] the path to a column at the end of to-one associations
      # @return [Object] the associations that the block uses, in the form of ActiveRecord's `preload`
      # @return [Symbol, nil] the method that is called; nil for a block or a path
      # @return [Boolean] whether to write the column as stored, without the model's reader and callbacks
      attr_reader :key, :method, :conditional_proc, :from, :preloads, :column, :as_stored

      def initialize(key:, method:, options: {})
        @key = key
        @conditional_proc, @preloads = options.values_at(:if, :preloads)
        @from = path(options[:from]) if options[:from]
        @as_stored = options[:as_stored] ? true : false
        @column = method unless from || method.is_a?(Proc)
        if as_stored && method.is_a?(Proc)
          raise ConfigurationError, "attribute #{key.inspect}: as_stored: writes a column as it is; leave out the block"
        end

        @method = from || as_stored ? ->(record) { walk(record) } : method
      end

      # Writes the member into the hash, unless its condition is false.
      def serialize(record, params, hash)
        return if conditional_proc && !Serializer.call_proc(conditional_proc, record, params)

        hash[key] = value(record, params)
      end

      # @return [Object] the value, regardless of the condition
      def value(record, params) = method.is_a?(Proc) ? Serializer.call_proc(method, record, params) : record.public_send(method)

      # @return [Boolean] whether its value depends on `params`
      def params? = Serializer.takes_params?(method) || Serializer.takes_params?(conditional_proc)

      private

      # @param from [String, Hash] "employee.id" or { employee: :id }
      def path(from)
        return from.to_s.split(".").map(&:to_sym) unless from.is_a?(Hash)

        from.flat_map { |name, rest| [name.to_sym, *path(rest)] }
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
