# frozen_string_literal: true

module Castellan
  module Rows
    # What rows ask of records that are plain objects or hashes: their public readers, or their keys.
    #
    #   ObjectInstances.new.read([{ title: "Keep" }, Article.new("Motte")], :title)   # => ["Keep", "Motte"]
    #
    # Everything that such an object answers is there already: nothing is loaded for it.
    class ObjectInstances
      # @param records [Array<Object>]
      # @param name [Symbol]
      # @return [Array<Object>] one value a record
      def read(records, name)
        records.map { |record| value(record, name) }
      end

      # @param records [Array<Object>]
      # @param name [Symbol] of a column
      # @return [Array<Object>] what the table holds, as far as the record has it, whatever its readers make of it
      def stored(records, name)
        records.map { |record| stored_value(record, name) }
      end

      # @param records [Array<Object>]
      # @return [Boolean] whether each is of the very class whose columns are known, so that {#column} may be asked
      def uniform?(_records)
        false
      end

      # @param records [Array<Object>] uniform ones
      # @param name [Symbol]
      # @return [Array(Array<Object>, Symbol), nil] the values of a column and how they are written; nil: read and see
      def column(_records, _name)
        nil
      end

      # @return [Boolean] whether a relationship of the record can be read without a statement
      def loaded?(_record, _name)
        true
      end

      # @return [Array<Object>] the related records, in order
      def related(record, name)
        list(value(record, name))
      end

      # @return [Boolean] whether the database has rows of all of these records
      def stored?(_records)
        false
      end

      # @return [Boolean] whether all records are such as this knows to read
      def all?(_records)
        true
      end

      # Loads associations of records, in as few statements as the ORM needs.
      def preload(_records, _names); end

      # @param name [Symbol] of an association
      # @return [Boolean] whether loading it for many records at once finds what each would find by itself
      def loads_at_once?(_name)
        true
      end

      # Loads one association of all records at once, where that finds what each would find by itself. Where it does not, nothing is
      # loaded: each record loads its own when it is read.
      def preload_where_same(_records, _name); end

      private

      def stored_value(record, name)
        return record.attribute_in_database(name) if record.respond_to?(:attribute_in_database) && record.has_attribute?(name)
        return record.values[name] if defined?(::Sequel::Model) && record.is_a?(::Sequel::Model) && record.values.key?(name)

        value(record, name)
      end

      def value(record, name)
        return record.fetch(name) { record.fetch(name.name) { missing(record, name) } } if record.is_a?(Hash)

        record.public_send(name)
      rescue NoMethodError => error
        raise if error.name != name || record.respond_to?(name, true)

        raise Error, "a record of #{record.class} has no #{name} (it is #{record.inspect[0, 60]})"
      end

      def missing(record, name)
        raise Error, "a record given as a Hash has no #{name.inspect} (it has #{record.keys.first(20).map(&:inspect).join(", ")})"
      end

      def list(found)
        Records.list?(found) ? found.to_a : [found].compact
      end
    end
  end
end
