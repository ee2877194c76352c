# frozen_string_literal: true

module Castellan
  module Serializer
    # Whether records that were given tell what their rows would: only then may rows be asked for the rest.
    #
    #   StoredRecords.all?([ada, alan])                              # => true: saved, and of one model
    #   StoredRecords.linked?([ada], arrangement, translation, {})   # => false where a role was built for her and not saved
    module StoredRecords
      class << self
        # @param records [Array<Object>]
        # @return [Boolean]
        def all?(records)
          models = records.map(&:class).uniq # not instance_of?, which a decorator answers for what is in it
          models.size == 1 && model?(models.first) && records.all? { |record| stored?(record) }
        end

        # @param arrangement [Arrangement] knows which relationships are written
        # @param tree [Hash{Symbol => Hash}] what is included
        # @return [Boolean] whether what the records hold in their associations is what is stored
        def linked?(records, arrangement, translation, tree)
          (arrangement.linked(translation).map(&:name) | tree.keys).all? do |name|
            association = translation.association(name)
            held = records.map { |record| [record, held(record, name)] }.select(&:last)
            related = held.flat_map(&:last)
            related.all? { |one| stored?(one) } && held.all? { |record, found| association.linked?(record, found) } &&
              (related.empty? || !tree[name] || linked?(related, arrangement, association.target, tree[name]))
          end
        end

        private

        def model?(object)
          (defined?(::ActiveRecord::Base) && object < ::ActiveRecord::Base) || (defined?(::Sequel::Model) && object < ::Sequel::Model)
        end

        # A record with methods of its own (extended by a module, as presenters do) answers what no row knows.
        def stored?(record)
          (record.respond_to?(:persisted?) ? record.persisted? : !record.new?) && record.singleton_methods.empty?
        end

        # @return [Array<Object>, nil] nil where nothing is loaded, built or put in place
        def held(record, name)
          return [*record.associations[name]] if record.respond_to?(:associations) && record.associations.key?(name)

          association = record.association(name) if record.respond_to?(:persisted?)
          [*association.target] if association && (association.loaded? || association.target.present?)
        end
      end
    end
  end
end
